import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { PodProbeResults, ProbeKind } from "../../model/probe.ts";

/** Probes as the ring needs them. Results are read at each plan and status; a change of one comes as `PodWorker.probed`. */
export interface PodProbes {
  /** Called at each sync of a pod that should run, with what was just read: begins, goes on, or takes up a new instance. */
  follow(pod: Pod, observed: ObservedPod): void;
  /** The pod ends: nothing is restarted any more, readiness is still probed. Safe to repeat. */
  terminating(uid: string): void;
  /** Nothing of the pod runs any more. Safe to repeat. */
  forget(uid: string): void;
  results(uid: string): PodProbeResults;
}

/** Whether the worker has to look again after this result: to restart the container, or to start what waited for it. */
export function needsSync(kind: ProbeKind): boolean {
  return kind !== "readiness";
}
