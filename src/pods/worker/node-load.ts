import type { Pod } from "../../model/generated/types.ts";
import type { AllocatedPod } from "../admission/resize-queue.ts";
import type { NodeLoad } from "../admission/verdict.ts";
import { isTerminalPhase } from "../status/derive.ts";
import type { PodWorker } from "./worker.ts";

type LoadedWorker = Pick<PodWorker, "phase" | "willStop" | "pod" | "allocated" | "lastStatus" | "identity">;

/** Returns the pods that count against the node's room; `unread` are adopted pods without a status yet. Pure. */
export function nodeLoad(workers: Iterable<LoadedWorker>, unread: ReadonlySet<string>): NodeLoad {
  const load = { active: [] as Pod[], stopping: [] as Pod[], unread: [] as Pod[] };
  for (const worker of workers) {
    if (worker.phase === "stopped" || worker.phase === "gone") continue;
    const isStopping = worker.phase === "stopping" || worker.willStop || isEnding(worker.pod);
    const isTerminal = isTerminalPhase(worker.lastStatus?.phase);
    const isUnread = unread.has(worker.identity.uid);
    load[isStopping || isTerminal ? "stopping" : isUnread ? "unread" : "active"].push(worker.allocated);
  }
  return load;
}

/** Returns the pods that have resources allocated; one that stops asks for no more than it has. Pure. */
export function allocatedPods(workers: Iterable<LoadedWorker>): readonly AllocatedPod[] {
  return [...workers]
    .filter(({ phase }) => phase === "syncing" || phase === "stopping")
    .map(({ pod, allocated, willStop }) => ({ desired: willStop ? allocated : pod, allocated }));
}

/** True for a pod that the API server was asked to delete, or whose phase is terminal there. */
export function isEnding({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined || isTerminalPhase(status?.phase);
}
