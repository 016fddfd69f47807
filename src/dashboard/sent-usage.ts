import type { NodeUsageReport, PodUsageLine, UsageLine } from "../model/node-usage.ts";
import type { UsageChanges } from "../model/page-lines.ts";

/** CPU usage is sent in steps of so many billionths of a core: what an idle pod does between them is noise. */
const CPU_STEP = 1e6;
/** Memory is sent in steps of so many bytes. */
const MEMORY_STEP = 64 * 1024;

/** What a stream has sent of usage. */
export class SentUsage {
  private sent = new Map<string, string>();

  /** The node, and the pods whose usage differs from what was sent. */
  next({ node, cores, memoryBytes, pods }: NodeUsageReport): UsageChanges {
    const now = new Map<string, string>();
    const changed = pods.map(rounded).filter((pod) => {
      // Times differ in every sample.
      const text = JSON.stringify({ ...pod, at: 0, containers: pod.containers.map((one) => ({ ...one, at: 0 })) });
      now.set(pod.uid, text);
      return this.sent.get(pod.uid) !== text;
    });
    const gone = [...this.sent.keys()].filter((uid) => !now.has(uid));
    this.sent = now;
    return { at: node.at, node, cores, memoryBytes, pods: changed, gone };
  }
}

function rounded(pod: PodUsageLine): PodUsageLine {
  return { ...pod, ...steps(pod), containers: pod.containers.map((one) => ({ ...one, ...steps(one) })) };
}

function steps({ nanoCores, workingSetBytes }: UsageLine): Pick<UsageLine, "nanoCores" | "workingSetBytes"> {
  const memory = Math.round(workingSetBytes / MEMORY_STEP) * MEMORY_STEP;
  if (nanoCores === undefined) return { workingSetBytes: memory };
  return { nanoCores: Math.round(nanoCores / CPU_STEP) * CPU_STEP, workingSetBytes: memory };
}
