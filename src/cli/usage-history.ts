import type { NetworkCounters, NodeUsageReport, UsageLine } from "../model/node-usage.ts";

/** Samples that a sparkline shows. */
const MOST = 20;
const BARS = "▁▂▃▄▅▆▇█";
/** The key of the node; that of a pod is its UID. */
export const NODE = "";

/** Bytes a second. */
export interface NetworkRate {
  readonly received: number;
  readonly sent: number;
}

interface Readings {
  readonly at: number;
  readonly cpu: readonly number[];
  readonly memory: readonly number[];
  readonly network: NetworkCounters | undefined;
  readonly rate: NetworkRate | undefined;
}

/** The last samples of node and pods, for sparklines and rates. */
export class UsageHistory {
  private readings = new Map<string, Readings>();

  /** Adds a report; a sample that was added before is not added again, and pods that ended are evicted. */
  add({ node, pods }: NodeUsageReport): void {
    const next = new Map([[NODE, this.advance(NODE, node)]]);
    for (const pod of pods) next.set(pod.uid, this.advance(pod.uid, pod));
    this.readings = next;
  }

  /** One bar a sample; `whole` is a full bar, and defaults to the highest of them. Empty before the second sample. */
  sparkline(key: string, of: "cpu" | "memory", whole?: number): string {
    const values = this.readings.get(key)?.[of] ?? [];
    if (values.length < 2) return "";
    const highest = whole ?? Math.max(...values, 1);
    const bar = (value: number): string => BARS[Math.round(Math.min(1, value / highest) * (BARS.length - 1))] ?? "";
    return values.map(bar).join("");
  }

  /** Traffic between the last two samples; undefined before the second. */
  networkRate(key: string): NetworkRate | undefined {
    return this.readings.get(key)?.rate;
  }

  private advance(key: string, line: UsageLine & { readonly network?: NetworkCounters }): Readings {
    const before = this.readings.get(key);
    const { at, nanoCores = 0, workingSetBytes, network } = line;
    if (before?.at === at) return before;
    return {
      at,
      cpu: [...(before?.cpu ?? []), nanoCores].slice(-MOST),
      memory: [...(before?.memory ?? []), workingSetBytes].slice(-MOST),
      network,
      rate: rateOf(before, network, at),
    };
  }
}

function rateOf(before: Readings | undefined, now: NetworkCounters | undefined, at: number): NetworkRate | undefined {
  if (before?.network === undefined || now === undefined || at <= before.at) return undefined;
  const seconds = (at - before.at) / 1000;
  // Counters that went back belong to new interfaces.
  const received = Math.max(0, now.rxBytes - before.network.rxBytes) / seconds;
  const sent = Math.max(0, now.txBytes - before.network.txBytes) / seconds;
  return { received, sent };
}
