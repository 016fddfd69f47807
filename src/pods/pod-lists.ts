import type { Pod } from "../model/generated/types.ts";
import type { DesiredPods } from "./desired.ts";
import { isTerminalPhase } from "./status/derive.ts";
import type { WorkerPool } from "./worker/pool.ts";

/** The pods of the node as others list them. */
export interface PodLists {
  /** Those that are, or may still be, admitted and have not completed, as in Kubernetes. */
  activePods(): readonly Pod[];
  /** All that a source has. */
  knownPods(): readonly Pod[];
}

type Pool = Pick<WorkerPool, "worker" | "status" | "isFinished">;

export function podLists(desired: Pick<DesiredPods, "list">, pool: Pool): PodLists {
  return {
    knownPods: () => desired.list().map(({ pod }) => pod),
    activePods: () => {
      // After a start of the agent pods have their devices before they have a worker.
      const isHere = (uid: string): boolean => pool.worker(uid) !== undefined || !pool.isFinished(uid);
      const isActive = (uid: string, pod: Pod): boolean =>
        isHere(uid) && !isTerminalPhase((pool.status(uid) ?? pod.status)?.phase);
      return desired
        .list()
        .filter(({ uid, pod }) => isActive(uid, pod))
        .map(({ pod }) => pod);
    },
  };
}
