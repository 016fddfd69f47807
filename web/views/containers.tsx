import type { ContainerUsageLine, UsagePressure } from "../../src/model/node-usage.ts";
import type { ContainerDetails } from "../../src/model/page-lines.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { ago, bytes, count, millicores } from "../format.ts";
import { Age, Section, Table } from "../parts.tsx";

interface ContainersProps {
  readonly pod: PodExplanation;
  readonly usage: readonly ContainerUsageLine[] | undefined;
  readonly details: readonly ContainerDetails[] | undefined;
}

/** The containers of a pod: state, and what each uses. */
export function Containers({ pod, usage = [], details = [] }: ContainersProps) {
  const hasPressure = usage.some(({ pressure }) => pressure !== undefined);
  return (
    <Section title="Containers">
      <Table label="Containers">
        <thead>
          <tr>
            <th scope="col">Container</th>
            <th scope="col">State</th>
            <th scope="col">CPU</th>
            <th scope="col">Memory</th>
            {hasPressure && <th scope="col">Pressure</th>}
            <th scope="col">Disk read, written</th>
            <th scope="col">Processes</th>
          </tr>
        </thead>
        <tbody>
          {pod.containers.map((one) => {
            const line = usage.find(({ name }) => name === one.name);
            const more = details.find(({ name }) => name === one.name);
            return (
              <tr key={one.name}>
                <th scope="row" class="wrap">
                  {one.name} {one.kind !== "regular" && <span class="badge">{one.kind}</span>}
                  <div class="muted small">{one.image}</div>
                </th>
                <td data-label="State" class="wrap">
                  <ContainerState one={one} />
                </td>
                <td data-label="CPU">
                  <Cpu line={line} details={more} />
                </td>
                <td data-label="Memory">
                  <Memory line={line} details={more} />
                </td>
                {hasPressure && <td data-label="Pressure">{line?.pressure ? pressureWords(line.pressure) : "–"}</td>}
                <td data-label="Disk">
                  {more === undefined ? "–" : `${bytes(more.readBytes)}, ${bytes(more.writtenBytes)}`}
                </td>
                <td data-label="Processes">
                  <Processes line={line} details={more} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </Section>
  );
}

interface CellProps {
  readonly line: ContainerUsageLine | undefined;
  readonly details: ContainerDetails | undefined;
}

function ContainerState({ one }: { readonly one: PodExplanation["containers"][number] }) {
  const why = [one.reason, one.exitCode === undefined ? "" : `exit ${one.exitCode}`].filter(Boolean).join(", ");
  return (
    <>
      {one.state}
      {why !== "" && `: ${why}`}
      <div class="muted small">
        {count(one.restarts, "restart")}
        {one.since !== undefined && (
          <>
            , <Age at={one.since} />
          </>
        )}
      </div>
      {one.message !== "" && <div class="small output">{one.message}</div>}
    </>
  );
}

function Cpu({ line, details }: CellProps) {
  const { cpuLimitCores, throttledNanos = 0 } = details ?? {};
  return (
    <>
      {millicores(line?.nanoCores)}
      {cpuLimitCores !== undefined && <span class="muted"> of {Math.round(cpuLimitCores * 1000)}m</span>}
      {throttledNanos > 0 && <div class="muted small">throttled {ago(throttledNanos / 1e6)}</div>}
    </>
  );
}

function Memory({ line, details }: CellProps) {
  return (
    <>
      {line === undefined ? "–" : bytes(line.workingSetBytes)}
      {line?.memoryLimitBytes !== undefined && <span class="muted"> of {bytes(line.memoryLimitBytes)}</span>}
      {details !== undefined && details.oomKills > 0 && (
        <div class="small bad">{count(details.oomKills, "OOM kill")}</div>
      )}
    </>
  );
}

function Processes({ line, details }: CellProps) {
  const { processes, descriptors, sockets } = details ?? {};
  return (
    <>
      {processes ?? line?.tasks ?? "–"}
      {descriptors !== undefined && (
        <div class="muted small">
          {count(descriptors, "file")}, {count(sockets ?? 0, "socket")}
        </div>
      )}
    </>
  );
}

/** Shares of the last ten seconds in which some task waited. */
function pressureWords(pressure: UsagePressure): string {
  return Object.entries(pressure)
    .map(([name, share]) => `${name} ${Number(share).toFixed(1)} %`)
    .join(", ");
}
