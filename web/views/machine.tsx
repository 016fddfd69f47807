import type { NodeExplanation } from "../../src/model/node-pressure.ts";
import type { PageMachine } from "../../src/model/page-lines.ts";
import { ago, bytes } from "../format.ts";
import { Section, Table, Title } from "../parts.tsx";
import { may } from "../store.ts";
import { useAnswer } from "../use-answer.ts";

/** The machine: what it is, how it is laid out, and what it is short of. */
export function Machine() {
  const { answer: machine, problem } = useAnswer<PageMachine>(may("machine") ? "machine" : undefined);
  const { answer: node } = useAnswer<NodeExplanation>(may("usage") ? "node" : undefined, 10_000);
  return (
    <>
      <Title>Machine</Title>
      {problem !== undefined && <p role="alert">{problem}</p>}
      {machine !== undefined && <Facts machine={machine} />}
      {machine !== undefined && <Topology machine={machine} />}
      {node !== undefined && <Pressure node={node} />}
    </>
  );
}

function Facts({ machine }: { readonly machine: PageMachine }) {
  const rows: readonly (readonly [string, string])[] = [
    ["System", machine.osImage],
    ["Kernel", `${machine.kernel}, ${machine.architecture}`],
    ["Memory", bytes(machine.memoryBytes)],
    ["Disks", machine.disks.map(({ name, size }) => `${name} ${bytes(size)}`).join(", ") || "–"],
    ["Network", machine.networkDevices.map(({ name, mtu }) => `${name} (MTU ${mtu})`).join(", ") || "–"],
  ];
  return (
    <Section title="Facts">
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Topology({ machine }: { readonly machine: PageMachine }) {
  const { sockets, physicalCores, cores, cpuKhz } = machine;
  const perSocket = Math.max(1, Math.round(cores / Math.max(1, sockets)));
  return (
    <Section title="Topology">
      <p>
        {cores} processors on {physicalCores} cores in {sockets} sockets
        {cpuKhz > 0 && `, ${(cpuKhz / 1e6).toFixed(1)} GHz`}.
      </p>
      <ul class="sockets">
        {Array.from({ length: Math.max(1, sockets) }, (_, socket) => (
          <li key={socket} class="socket">
            <strong>Socket {socket}</strong>
            <div class="cpus" aria-hidden="true">
              {Array.from({ length: perSocket }, (_none, cpu) => (
                <i key={cpu}>{socket * perSocket + cpu}</i>
              ))}
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Pressure({ node }: { readonly node: NodeExplanation }) {
  const amount = (value: number, unit: "bytes" | "count"): string => (unit === "bytes" ? bytes(value) : String(value));
  return (
    <Section title="Pressure">
      <p>{node.conditions.length === 0 ? "The node is short of nothing." : node.conditions.join(", ")}</p>
      <Table label="Eviction signals">
        <thead>
          <tr>
            <th scope="col">Signal</th>
            <th scope="col">Available</th>
            <th scope="col">Capacity</th>
            <th scope="col">Thresholds</th>
          </tr>
        </thead>
        <tbody>
          {node.signals.map((one) => (
            <tr key={one.signal}>
              <th scope="row">{one.signal}</th>
              <td data-label="Available">{amount(one.available, one.unit)}</td>
              <td data-label="Capacity">{amount(one.capacity, one.unit)}</td>
              <td data-label="Thresholds">
                {one.thresholds
                  .map(
                    (it) =>
                      `${it.kind} ${amount(it.value, one.unit)}${it.graceMs > 0 ? ` for ${ago(it.graceMs)}` : ""}`,
                  )
                  .join(", ") || "none"}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
      {node.rankings.map(({ resource, pods, unit }) => (
        <details key={resource}>
          <summary>Who would be evicted first for {resource}</summary>
          <ol>
            {pods.slice(0, 10).map((pod) => (
              <li key={pod.uid}>
                {pod.namespace}/{pod.name}{" "}
                <span class="muted">
                  {pod.usage === undefined ? "" : `${amount(pod.usage, unit)}, `}
                  {pod.why}
                </span>
              </li>
            ))}
          </ol>
        </details>
      ))}
    </Section>
  );
}
