import type { NodeExplanation } from "../../src/model/node-pressure.ts";
import type { PageMachine } from "../../src/model/page-lines.ts";
import type { TopologyReport } from "../../src/model/topology-report.ts";
import { ago, bytes, count } from "../format.ts";
import { Age, Section, Table, Title } from "../parts.tsx";
import { may } from "../store.ts";
import { useAnswer } from "../use-answer.ts";
import { Topology } from "./topology.tsx";

/** The machine: what it is, how it is laid out, and what it is short of. */
export function Machine() {
  const { answer: machine, problem } = useAnswer<PageMachine>(may("machine") ? "machine" : undefined);
  const { answer: topology } = useAnswer<TopologyReport>(may("machine") ? "topology" : undefined, 10_000);
  const { answer: node } = useAnswer<NodeExplanation>(may("usage") ? "node" : undefined, 10_000);
  return (
    <>
      <Title>Machine</Title>
      {problem !== undefined && <p role="alert">{problem}</p>}
      {machine !== undefined && <Facts machine={machine} />}
      {topology !== undefined && <Topology report={topology} khz={machine?.cpuKhz ?? 0} />}
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

function Pressure({ node }: { readonly node: NodeExplanation }) {
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
              <td data-label="Available">
                {amount(one.available, one.unit)}
                {one.perSecond !== undefined && Math.abs(one.perSecond) >= 1 && (
                  <span class="muted small"> {trendOf(one.perSecond, one.unit)}</span>
                )}
              </td>
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
      {node.evictions.length > 0 && (
        <details>
          <summary>{count(node.evictions.length, "pod was", "pods were")} evicted</summary>
          <ul>
            {node.evictions.toReversed().map(({ at, pod, signal, message }) => (
              <li key={`${at}${pod.uid}`}>
                {pod.namespace}/{pod.name}{" "}
                <span class="muted">
                  for {signal}, <Age at={at} /> ago: {message}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
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

type Unit = "bytes" | "count";

function amount(value: number, unit: Unit): string {
  return unit === "bytes" ? bytes(value) : String(Math.round(value));
}

function trendOf(perSecond: number, unit: Unit): string {
  return `${perSecond < 0 ? "−" : "+"}${amount(Math.abs(perSecond), unit)}/s`;
}
