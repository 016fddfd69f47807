import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { PodProbeResults, ProbeKind } from "../../model/probe.ts";

/** Probes as the worker needs them. Results are read at each plan and status; a change arrives as `PodWorker.probed`. */
export interface PodProbes {
  /** Called at each sync of a pod that should run, with the latest observation: starts probing new instances. */
  follow(pod: Pod, observed: ObservedPod): void;
  /** The pod terminates: nothing is restarted any more, readiness is still probed. Safe to repeat. */
  terminating(uid: string): void;
  /** Stops probing: nothing of the pod runs any more. Safe to repeat. */
  forget(uid: string): void;
  results(uid: string): PodProbeResults;
}

/** True if the worker has to sync after this result: to restart the container, or to start what waited for it. */
export function needsSync(kind: ProbeKind): boolean {
  return kind !== "readiness";
}
