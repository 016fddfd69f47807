import type { NodeUsageLine, PodUsageHistory, UsageHistoryReport } from "../model/node-usage.ts";
import type { PodSample } from "./samples.ts";

/** The interval of what is kept, in milliseconds: samples for those who look are closer together. */
const INTERVAL_MS = 10_000;
/** Of samples that come at that interval, each is to count. */
const SOONEST_MS = INTERVAL_MS - 500;
const MOST_OF_NODE = 60;
const MOST_OF_POD = 40;

/** Numbers of a pod by the same index; those of a container begin when it was first seen, with zeros before. */
interface Kept {
  readonly at: number[];
  readonly nanoCores: number[];
  readonly containers: Map<string, { readonly nanoCores: number[]; readonly workingSetBytes: number[] }>;
}

/** The usage of the last minutes, so that charts do not begin empty: ten of the node, seven of each pod. */
export class UsageHistory {
  private readonly node: NodeUsageLine[] = [];
  private pods = new Map<string, Kept>();
  private addedAt = Number.NEGATIVE_INFINITY;

  /** Adds a sample, taken at this monotonic time. Pods that it does not have are evicted. */
  add(mono: number, line: () => NodeUsageLine, pods: Iterable<PodSample>): void {
    if (mono - this.addedAt < SOONEST_MS) return;
    this.addedAt = mono;
    push(this.node, line(), MOST_OF_NODE);
    const next = new Map<string, Kept>();
    for (const pod of pods) {
      const kept = this.pods.get(pod.uid) ?? { at: [], nanoCores: [], containers: new Map() };
      addPod(kept, pod);
      next.set(pod.uid, kept);
    }
    this.pods = next;
  }

  /** All that is kept of the node, and of the pods their CPU usage alone. */
  report(): UsageHistoryReport {
    return {
      node: [...this.node],
      pods: Object.fromEntries([...this.pods].map(([uid, { nanoCores }]) => [uid, [...nanoCores]])),
    };
  }

  /** Undefined if nothing is kept of the pod. */
  ofPod(uid: string): PodUsageHistory | undefined {
    const kept = this.pods.get(uid);
    return kept && { at: [...kept.at], containers: Object.fromEntries(kept.containers) };
  }
}

function addPod(kept: Kept, { usage, containers }: PodSample): void {
  push(kept.at, usage.at.wall, MOST_OF_POD);
  push(kept.nanoCores, usage.nanoCores ?? 0, MOST_OF_POD);
  for (const { name } of containers) {
    if (kept.containers.has(name)) continue;
    const none = () => kept.at.slice(1).map(() => 0);
    kept.containers.set(name, { nanoCores: none(), workingSetBytes: none() });
  }
  for (const [name, of] of kept.containers) {
    const found = containers.find((one) => one.name === name)?.usage;
    push(of.nanoCores, found?.nanoCores ?? 0, MOST_OF_POD);
    push(of.workingSetBytes, found?.memory?.workingSet ?? 0, MOST_OF_POD);
  }
}

function push<T>(list: T[], value: T, most: number): void {
  list.push(value);
  if (list.length > most) list.shift();
}
