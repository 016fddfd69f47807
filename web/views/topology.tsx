import type { CpuReport, DeviceReport, Holding, TopologyReport } from "../../src/model/topology-report.ts";
import { bytes, count } from "../format.ts";
import { Meter, Section, Table } from "../parts.tsx";
import { href } from "../router.ts";

type Place = "socket" | "numa" | "uncore" | "core";

/** Who holds something, with the letter that stands for it in the drawing. */
interface Holder extends Pick<Holding, "uid" | "namespace" | "pod" | "container"> {
  readonly letter: string;
  readonly tone: number;
}

/** Colours of holders in the style sheet. */
const TONES = 6;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Sockets, NUMA nodes, L3 groups, cores and threads, memory and devices, and who has what of them. */
export function Topology({ report, khz }: { readonly report: TopologyReport; readonly khz: number }) {
  const { cpus, nodes, devices } = report;
  const holders = holdersOf(report);
  const holderOf = cpuHolders(report, holders);
  const sockets = groups(cpus, "socket");
  const withCpus = new Set(cpus.map(({ numa }) => numa));
  return (
    <Section title="Topology">
      <p>{summaryOf(report, khz)}</p>
      <p class="muted small">{policiesOf(report)}</p>
      <div class="sockets">
        {sockets.map(([socket, own]) => (
          <div key={socket} class="socket">
            <h3>Socket {socket}</h3>
            {groups(own, "numa").map(([numa, ofNode]) => (
              <NumaNode key={numa} report={report} id={numa} holders={holders}>
                <Cores cpus={ofNode} holderOf={holderOf} />
              </NumaNode>
            ))}
          </div>
        ))}
        {nodes
          .filter(({ id }) => !withCpus.has(id))
          .map(({ id }) => (
            <div key={id} class="socket">
              <h3>Without processors</h3>
              <NumaNode report={report} id={id} holders={holders} />
            </div>
          ))}
      </div>
      <Legend report={report} />
      {devices.some((device) => device.nodes.length === 0) && (
        <>
          <h3>Devices of no NUMA node</h3>
          <Devices devices={devices.filter((device) => device.nodes.length === 0)} holders={holders} />
        </>
      )}
      <Holdings report={report} holders={holders} />
    </Section>
  );
}

function NumaNode({ report, id, holders, children }: NumaNodeProps) {
  const node = report.nodes.find((one) => one.id === id);
  const devices = report.devices.filter(({ nodes }) => nodes.includes(id));
  const isOnly = report.nodes.length < 2;
  return (
    <div class="numa">
      <h4>
        NUMA node {id}
        {!isOnly && node !== undefined && node.distances.length > 0 && (
          <span class="muted small"> distances {node.distances.join(" ")}</span>
        )}
      </h4>
      {children}
      <div class="pools">
        {node?.memory
          .filter(({ type, total }) => type === "memory" || total > 0)
          .map(({ type, total, allocatable, free }) =>
            allocatable === undefined || free === undefined ? (
              <p key={type} class="pool">
                {type} <span class="muted">{bytes(total)}</span>
              </p>
            ) : (
              <Meter
                key={type}
                label={type}
                part={allocatable - free}
                whole={allocatable}
                words={`${bytes(allocatable - free)} of ${bytes(allocatable)} held`}
              />
            ),
          )}
      </div>
      {devices.length > 0 && <Devices devices={devices} holders={holders} />}
    </div>
  );
}

interface NumaNodeProps {
  readonly report: TopologyReport;
  readonly id: number;
  readonly holders: ReadonlyMap<string, Holder>;
  readonly children?: preact.ComponentChildren;
}

/** The drawing: the table of holdings and the legend say the same in words. */
function Cores({ cpus, holderOf }: CoresProps) {
  const caches = groups(cpus, "uncore");
  return (
    <div class="caches" aria-hidden="true">
      {caches.map(([cache, own]) => (
        <div key={cache} class={caches.length > 1 ? "cache shown" : "cache"}>
          {caches.length > 1 && <span class="muted small">L3 {cache}</span>}
          <div class="cores">
            {groups(own, "core").map(([core, threads]) => (
              <span key={core} class="core">
                {threads.map(({ cpu, use }) => {
                  const holder = holderOf.get(cpu);
                  const tone = holder === undefined ? "" : ` tone${holder.tone}`;
                  return (
                    <i key={cpu} class={`cpu ${use}${tone}`} title={titleOf(cpu, use, holder)}>
                      {cpu}
                      {holder !== undefined && <b>{holder.letter}</b>}
                    </i>
                  );
                })}
              </span>
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

interface CoresProps {
  readonly cpus: readonly CpuReport[];
  readonly holderOf: ReadonlyMap<number, Holder>;
}

function Devices({ devices, holders }: DevicesProps) {
  return (
    <ul class="devices" aria-label="Devices">
      {devices.map(({ resource, id, isHealthy, holder }) => {
        const own = holder && holders.get(keyOf(holder));
        return (
          <li key={`${resource}/${id}`} class={isHealthy ? "" : "sick"}>
            <span class="muted">{resource}</span> <span class="wrap">{id}</span>
            {!isHealthy && <strong class="bad"> ✕ unhealthy</strong>}
            {own !== undefined && <Letter holder={own} />}
          </li>
        );
      })}
    </ul>
  );
}

interface DevicesProps {
  readonly devices: readonly DeviceReport[];
  readonly holders: ReadonlyMap<string, Holder>;
}

function Letter({ holder }: { readonly holder: Holder }) {
  return <b class={`letter tone${holder.tone}`}>{holder.letter}</b>;
}

const USES: readonly (readonly [CpuReport["use"], string])[] = [
  ["any", "any container"],
  ["shared", "shared by containers without CPUs of their own"],
  ["reserved", "reserved for the system"],
  ["exclusive", "of one container"],
];

function Legend({ report }: { readonly report: TopologyReport }) {
  const { cpus, offline } = report;
  const of = (use: CpuReport["use"]) => cpus.filter((one) => one.use === use).map(({ cpu }) => cpu);
  return (
    <ul class="uses">
      {USES.filter(([use]) => of(use).length > 0).map(([use, words]) => (
        <li key={use}>
          <i class={`cpu ${use}`} aria-hidden="true" /> {words}: <span class="muted">{ranges(of(use))}</span>
        </li>
      ))}
      {offline.length > 0 && (
        <li>
          offline: <span class="muted">{ranges(offline)}</span>
        </li>
      )}
    </ul>
  );
}

function Holdings({ report, holders }: Pick<NumaNodeProps, "report" | "holders">) {
  if (holders.size === 0) return null;
  return (
    <>
      <h3>Who has what</h3>
      <Table label="Who has what">
        <thead>
          <tr>
            <th scope="col">Container</th>
            <th scope="col">CPUs</th>
            <th scope="col">Memory</th>
            <th scope="col">Devices</th>
          </tr>
        </thead>
        <tbody>
          {[...holders].map(([key, holder]) => {
            const own = report.holdings.filter((one) => keyOf(one) === key);
            const memory = own.flatMap((one) => one.memory);
            const devices = report.devices.filter((one) => one.holder && keyOf(one.holder) === key);
            return (
              <tr key={key}>
                <th scope="row" class="wrap">
                  <Letter holder={holder} /> <a href={href("pods", holder.uid)}>{holder.pod}</a>
                  <div class="muted small">
                    {holder.namespace} · {holder.container}
                  </div>
                </th>
                <td data-label="CPUs">{ranges(own.flatMap(({ cpus }) => cpus)) || "–"}</td>
                <td data-label="Memory">
                  {memory.map(({ type, bytes: amount, nodes }) => (
                    <div key={`${type}${nodes}`}>
                      {type} {bytes(amount)} <span class="muted">node {nodes.join(", ")}</span>
                    </div>
                  ))}
                  {memory.length === 0 && "–"}
                </td>
                <td data-label="Devices" class="wrap">
                  {devices.map(({ resource, id }) => (
                    <div key={`${resource}${id}`}>
                      <span class="muted">{resource}</span> {id}
                    </div>
                  ))}
                  {devices.length === 0 && "–"}
                </td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </>
  );
}

function summaryOf({ cpus, nodes }: TopologyReport, khz: number): string {
  const of = (place: Place) => groups(cpus, place).length;
  return [
    `${count(cpus.length, "processor")} on ${count(of("core"), "core")} in ${count(of("socket"), "socket")}`,
    ...(nodes.length > 1 ? [count(nodes.length, "NUMA node")] : []),
    ...(of("uncore") > of("socket") ? [`${of("uncore")} L3 groups`] : []),
    ...(khz > 0 ? [`${(khz / 1e6).toFixed(1)} GHz`] : []),
  ].join(", ");
}

function policiesOf({ policies: { cpu, memory, topology, scope } }: TopologyReport): string {
  return `CPU policy ${cpu}, memory policy ${memory}, topology policy ${topology} (scope ${scope})`;
}

function titleOf(cpu: number, use: CpuReport["use"], holder: Holder | undefined): string {
  return `CPU ${cpu}: ${holder === undefined ? use : `${holder.namespace}/${holder.pod} ${holder.container}`}`;
}

function keyOf({ uid, container }: Pick<Holding, "uid" | "container">): string {
  return `${uid}/${container}`;
}

/** Those who have CPUs, memory or devices for themselves, by pod and container. */
function holdersOf({ holdings, devices }: TopologyReport): ReadonlyMap<string, Holder> {
  const found = new Map<string, Holder>();
  for (const of of [...holdings, ...devices.flatMap(({ holder }) => holder ?? [])]) {
    if (found.has(keyOf(of))) continue;
    const { uid, namespace, pod, container } = of;
    const letter = LETTERS[found.size] ?? String(found.size);
    found.set(keyOf(of), { uid, namespace, pod, container, letter, tone: found.size % TONES });
  }
  return found;
}

function cpuHolders({ holdings }: TopologyReport, holders: ReadonlyMap<string, Holder>): ReadonlyMap<number, Holder> {
  const found = new Map<number, Holder>();
  for (const one of holdings) {
    const holder = holders.get(keyOf(one));
    for (const cpu of one.cpus) if (holder !== undefined) found.set(cpu, holder);
  }
  return found;
}

/** CPUs by where they are, in ascending order. */
function groups(cpus: readonly CpuReport[], place: Place): readonly (readonly [number, readonly CpuReport[]])[] {
  const found = new Map<number, CpuReport[]>();
  for (const cpu of cpus) {
    const group = found.get(cpu[place]);
    if (group === undefined) found.set(cpu[place], [cpu]);
    else group.push(cpu);
  }
  return [...found].sort(([a], [b]) => a - b);
}

/** `0-3, 8`. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let from = 0; from < sorted.length; ) {
    let to = from;
    while (sorted[to + 1] === (sorted[to] ?? 0) + 1) to++;
    parts.push(to > from ? `${sorted[from]}-${sorted[to]}` : `${sorted[from]}`);
    from = to + 1;
  }
  return parts.join(", ");
}
