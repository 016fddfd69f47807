import { podIdentity } from "../../model/pod-facts.ts";
import type { ExecuteDeps, PodRun } from "../execute/context.ts";
import { killContainers, stopSandboxes } from "../execute/kill.ts";
import { removeDirectory, removeInstances, removeLogs } from "../execute/remove.ts";
import type { TerminationAction } from "../plan/termination.ts";

/** Planned actions, and who is notified before each of them. */
export interface PlannedTermination {
  readonly actions: readonly TerminationAction[];
  begin(action: TerminationAction): void;
}

/** Performs actions one after the other; rejects with the first failure. */
export async function performTermination(
  deps: ExecuteDeps,
  run: PodRun,
  { actions, begin }: PlannedTermination,
): Promise<void> {
  for (const action of actions) {
    begin(action);
    if (action.do === "together") {
      const going = action.sequences.map((sequence) => performTermination(deps, run, { actions: sequence, begin }));
      // Each to its end: the next try must not meet what is left of this one.
      for (const result of await Promise.allSettled(going)) if (result.status === "rejected") throw result.reason;
    } else await perform(deps, run, action);
  }
}

type Single = Exclude<TerminationAction, { do: "together" }>;

async function perform(deps: ExecuteDeps, run: PodRun, action: Single): Promise<void> {
  const pod = podIdentity(run.pod);
  const options = { signal: run.interrupt };
  switch (action.do) {
    case "killContainers":
      return killContainers(deps, run, action.stages);
    case "stopSandboxes":
      return stopSandboxes(deps, run, action.sandboxIds);
    case "removeInstances":
      return removeInstances(deps, { ...action, pod }, options);
    case "tearDownVolumes":
      return deps.volumes.teardown(pod.uid, options);
    case "removeCgroup":
      return deps.cgroups.remove(pod.uid);
    case "removeLogs":
      return removeLogs(deps, pod);
    case "removeDirectory":
      return removeDirectory(deps, pod.uid);
    case "releaseUserNamespace":
      return deps.users.release(pod.uid);
  }
}
