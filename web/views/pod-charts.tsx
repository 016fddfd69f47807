import type { PodUsageHistory, PodUsageLine } from "../../src/model/node-usage.ts";
import type { ContainerDetails } from "../../src/model/page-lines.ts";
import { Chart, type ChartLine } from "../chart.tsx";
import { bytes, millicores, perSecond } from "../format.ts";
import { push, rateOf, type Series } from "../store.ts";

const COLORS = ["series1", "series2", "series3", "series4"];
/** So many containers have lines of their own. */
const MOST = 4;

/** The samples of a pod that is looked at. */
export class PodHistory {
  readonly names: string[] = [];
  readonly cpu: Series = { at: [], values: [] };
  readonly memory: Series = { at: [], values: [] };
  readonly network: Series = { at: [], values: [[], []] };
  readonly disk: Series = { at: [], values: [[], []] };
  private before: PodUsageLine | undefined;
  private bytesBefore: { readonly at: number; readonly read: number; readonly written: number } | undefined;

  /** The earliest time of all charts, in seconds. */
  get since(): number | undefined {
    return this.cpu.at[0];
  }

  /** Begins with what the agent kept; later ones are of another connection, and only fill a gap. */
  begin({ at, containers }: PodUsageHistory): void {
    const last = this.cpu.at.at(-1) ?? 0;
    for (const name of Object.keys(containers)) this.knowName(name);
    for (const [index, time] of at.entries()) {
      if (time / 1000 <= last) continue;
      const of = (name: string) => containers[name];
      push(
        this.cpu,
        time / 1000,
        this.names.map((name) => (of(name)?.nanoCores[index] ?? 0) / 1e9),
      );
      push(
        this.memory,
        time / 1000,
        this.names.map((name) => of(name)?.workingSetBytes[index] ?? 0),
      );
    }
  }

  add(usage: PodUsageLine, details: readonly ContainerDetails[]): void {
    for (const { name } of usage.containers) this.knowName(name);
    const at = usage.at / 1000;
    const of = (name: string) => usage.containers.find((one) => one.name === name);
    push(
      this.cpu,
      at,
      this.names.map((name) => (of(name)?.nanoCores ?? 0) / 1e9),
    );
    push(
      this.memory,
      at,
      this.names.map((name) => of(name)?.workingSetBytes ?? 0),
    );
    const { before } = this;
    if (usage.network !== undefined) {
      const flow =
        before?.network && rateOf({ ...before, network: before.network }, { ...usage, network: usage.network });
      push(this.network, at, [flow?.received ?? 0, flow?.sent ?? 0]);
    }
    this.before = usage;
    this.addDisk(usage.at, details);
  }

  private knowName(name: string): void {
    if (this.names.includes(name) || this.names.length >= MOST) return;
    this.names.push(name);
    for (const series of [this.cpu, this.memory]) series.values.push(series.at.map(() => 0));
  }

  private addDisk(at: number, details: readonly ContainerDetails[]): void {
    const read = details.reduce((sum, one) => sum + one.readBytes, 0);
    const written = details.reduce((sum, one) => sum + one.writtenBytes, 0);
    const last = this.bytesBefore;
    const seconds = last === undefined ? 0 : (at - last.at) / 1000;
    const rate = (from: number | undefined, to: number): number =>
      from === undefined || seconds <= 0 ? 0 : Math.max(0, to - from) / seconds;
    push(this.disk, at / 1000, [rate(last?.read, read), rate(last?.written, written)]);
    if (last === undefined || at > last.at) this.bytesBefore = { at, read, written };
  }
}

/** CPU, memory, network and disk of a pod. */
export function PodCharts({
  history,
  usage,
}: {
  readonly history: PodHistory;
  readonly usage: PodUsageLine | undefined;
}) {
  if (usage === undefined) return null;
  const lines = history.names.map((label, index): ChartLine => {
    return { label, index, color: COLORS[index] ?? "series1", fill: history.names.length === 1 };
  });
  const last = (series: Series, index: number): number => series.values[index]?.at(-1) ?? 0;
  const { since } = history;
  return (
    <div class="charts two">
      <Chart
        title="CPU"
        value={millicores(usage.nanoCores)}
        series={history.cpu}
        lines={lines}
        format={(cores) => `${Math.round(cores * 1000)}m`}
        least={0.01}
        since={since}
        version={usage.at}
      />
      <Chart
        title="Memory"
        value={bytes(usage.workingSetBytes)}
        series={history.memory}
        lines={lines}
        format={bytes}
        binary
        least={4096}
        since={since}
        version={usage.at}
      />
      {usage.network !== undefined && (
        <Chart
          title="Network"
          value={`${perSecond(last(history.network, 0))} in, ${perSecond(last(history.network, 1))} out`}
          series={history.network}
          lines={[
            { label: "received", index: 0, color: "series1" },
            { label: "sent", index: 1, color: "series3" },
          ]}
          format={bytes}
          binary
          least={4096}
          since={since}
          version={usage.at}
        />
      )}
      <Chart
        title="Disk"
        value={`${perSecond(last(history.disk, 0))} read, ${perSecond(last(history.disk, 1))} written`}
        series={history.disk}
        lines={[
          { label: "read", index: 0, color: "series2" },
          { label: "written", index: 1, color: "series4" },
        ]}
        format={bytes}
        binary
        least={4096}
        since={since}
        version={usage.at}
      />
    </div>
  );
}
