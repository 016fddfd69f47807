import type { Pod } from "../../model/generated/types.ts";
import type { AllocatedPod } from "../admission/resize-queue.ts";
import type { NodeLoad } from "../admission/verdict.ts";
import { isTerminalPhase } from "../status/derive.ts";
import type { PodWorker } from "./worker.ts";

type LoadedWorker = Pick<PodWorker, "life" | "pod" | "allocated" | "lastStatus" | "identity" | "hasFailed">;

/**
 * Returns the pods that count against the node's room; `unread` are adopted pods without a status yet. One that cannot be
 * read counts as one that runs: others would wait for it for ever. Pure.
 */
export function nodeLoad(workers: Iterable<LoadedWorker>, unread: ReadonlySet<string>): NodeLoad {
  const load = { active: [] as Pod[], stopping: [] as Pod[], unread: [] as Pod[] };
  for (const worker of workers) {
    const { isKilled, stop } = worker.life;
    // Also while its volumes cannot be unmounted, as in Kubernetes.
    if (isKilled) continue;
    const isStopping = stop !== undefined || isEnding(worker.pod);
    const isTerminal = isTerminalPhase(worker.lastStatus?.phase);
    const isUnread = unread.has(worker.identity.uid) && !worker.hasFailed;
    load[isStopping || isTerminal ? "stopping" : isUnread ? "unread" : "active"].push(worker.allocated);
  }
  return load;
}

/** Returns the pods that have resources allocated; one that stops asks for no more than it has. Pure. */
export function allocatedPods(workers: Iterable<LoadedWorker>): readonly AllocatedPod[] {
  return [...workers]
    .filter(({ life }) => !life.isKilled)
    .map(({ pod, allocated, life }) => ({ desired: life.stop === undefined ? pod : allocated, allocated }));
}

/** True for a pod that the API server was asked to delete, or whose phase is terminal there. */
export function isEnding({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined || isTerminalPhase(status?.phase);
}
