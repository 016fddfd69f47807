import type { Pod } from "../model/generated/types.ts";
import type { DesiredPods } from "./desired.ts";
import { isTerminalPhase } from "./status/derive.ts";
import type { WorkerPool } from "./worker/pool.ts";

/** The pods of the node as others list them. */
export interface PodLists {
  /** Those that were admitted and have not completed, as in Kubernetes. */
  activePods(): readonly Pod[];
  /** All that a source has. */
  knownPods(): readonly Pod[];
}

export function podLists(desired: Pick<DesiredPods, "list">, pool: Pick<WorkerPool, "worker" | "status">): PodLists {
  return {
    knownPods: () => desired.list().map(({ pod }) => pod),
    activePods: () => {
      const isActive = (uid: string, pod: Pod): boolean =>
        pool.worker(uid) !== undefined && !isTerminalPhase((pool.status(uid) ?? pod.status)?.phase);
      return desired
        .list()
        .filter(({ uid, pod }) => isActive(uid, pod))
        .map(({ pod }) => pod);
    },
  };
}
