import { bytesWords, type Cell, table } from "../lib/table.ts";
import type { DiskSpace, NodeUsageReport, UsageLine } from "../model/node-usage.ts";
import { type NetworkRate, NODE, type UsageHistory } from "./usage-history.ts";

export interface UsageLayout {
  readonly color: boolean;
  /** Without pods. */
  readonly nodeOnly: boolean;
  /** Each container on a line of its own below its pod. */
  readonly containers: boolean;
  readonly sortBy: "cpu" | "memory";
}

/** The lines of `kubelet top`. Pure. */
export function renderUsage(report: NodeUsageReport, history: UsageHistory, layout: UsageLayout): readonly string[] {
  const lines = linesOf(table(nodeRows(report, history), { color: layout.color, gap: 2 }));
  return layout.nodeOnly ? lines : [...lines, "", ...podLines(report, history, layout)];
}

function nodeRows(report: NodeUsageReport, history: UsageHistory): Cell[][] {
  const { node, cores, memoryBytes } = report;
  const { swap, disk, imageDisk, pressure } = node;
  const rate = history.networkRate(NODE);
  const title = (text: string): Cell => ({ text, style: "bold" });
  const bars = (text: string): Cell => ({ text, style: "cyan" });
  const rows: Cell[][] = [
    [
      title("CPU"),
      `${millicores(node)} of ${cores} cores${share(node.nanoCores ?? 0, cores * 1e9)}`,
      bars(history.sparkline(NODE, "cpu", cores * 1e9)),
    ],
    [
      title("Memory"),
      `${bytesWords(node.workingSetBytes)} of ${bytesWords(memoryBytes)}${share(node.workingSetBytes, memoryBytes)}`,
      bars(history.sparkline(NODE, "memory", memoryBytes)),
    ],
  ];
  if (swap.totalBytes > 0) {
    rows.push([title("Swap"), `${bytesWords(swap.totalBytes - swap.freeBytes)} of ${bytesWords(swap.totalBytes)}`]);
  }
  if (disk !== undefined) rows.push([title("Disk"), spaceWords(disk)]);
  if (imageDisk !== undefined && imageDisk.capacityBytes !== disk?.capacityBytes) {
    rows.push([title("Images"), spaceWords(imageDisk)]);
  }
  if (rate !== undefined) rows.push([title("Network"), `${perSecond(rate.received)} in, ${perSecond(rate.sent)} out`]);
  if (node.tasks !== undefined) rows.push([title("Tasks"), String(node.tasks)]);
  if (pressure !== undefined) {
    const parts = Object.entries(pressure).map(([name, percent]) => `${name} ${percent.toFixed(1)} %`);
    rows.push([title("Pressure"), parts.join(", ")]);
  }
  return rows;
}

function podLines({ pods }: NodeUsageReport, history: UsageHistory, layout: UsageLayout): string[] {
  if (pods.length === 0) return ["No pods."];
  const sorted = layout.sortBy === "cpu" ? pods : pods.toSorted((a, b) => b.workingSetBytes - a.workingSetBytes);
  const hasRates = pods.some(({ uid }) => history.networkRate(uid) !== undefined);
  const usage = (line: UsageLine, rate: NetworkRate | undefined): Cell[] => [
    millicores(line),
    memoryWords(line),
    line.tasks === undefined ? "-" : String(line.tasks),
    ...(hasRates ? [rate ? perSecond(rate.received) : "", rate ? perSecond(rate.sent) : ""] : []),
  ];
  const rows = sorted.flatMap((pod): Cell[][] => {
    const bars: Cell = { text: history.sparkline(pod.uid, "cpu"), style: "cyan" };
    const row: Cell[] = [pod.namespace, pod.name, ...usage(pod, history.networkRate(pod.uid)), bars];
    if (!layout.containers) return [row];
    const below = pod.containers.map((one): Cell[] => ["", `  ${one.name}`, ...usage(one, undefined)]);
    return [row, ...below];
  });
  const header = ["NAMESPACE", "NAME", "CPU", "MEMORY", "TASKS", ...(hasRates ? ["IN", "OUT"] : [])];
  return linesOf(table(rows, { header, color: layout.color }));
}

function linesOf(text: string): string[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => line.trimEnd());
}

function share(part: number, whole: number): string {
  return whole === 0 ? "" : ` (${Math.round((part / whole) * 100)} %)`;
}

function millicores({ nanoCores }: UsageLine): string {
  return nanoCores === undefined ? "-" : `${Math.round(nanoCores / 1e6)}m`;
}

function memoryWords({ workingSetBytes, memoryLimitBytes }: UsageLine): string {
  const limit = memoryLimitBytes === undefined ? "" : ` of ${bytesWords(memoryLimitBytes)}`;
  return `${bytesWords(workingSetBytes)}${limit}`;
}

function spaceWords({ capacityBytes, availableBytes }: DiskSpace): string {
  const used = capacityBytes - availableBytes;
  return `${bytesWords(used)} of ${bytesWords(capacityBytes)}${share(used, capacityBytes)}`;
}

function perSecond(bytes: number): string {
  return `${bytesWords(bytes)}/s`;
}
