import { podIdentity } from "../../model/pod-facts.ts";
import type { ExecuteDeps, PodRun } from "../execute/context.ts";
import { stopSandboxes } from "../execute/kill.ts";
import { killHungContainers } from "../execute/kill-hung.ts";
import { removeDirectory, removeInstances, removeLogs } from "../execute/remove.ts";
import type { TerminationAction } from "../plan/termination.ts";

/** Planned actions, and who is notified before each of them. */
export interface PlannedTermination {
  readonly actions: readonly TerminationAction[];
  begin(action: TerminationAction): void;
}

/**
 * Performs actions one after the other; rejects with the first failure. The sandboxes are stopped also after a
 * container could not be, as in Kubernetes: what is left in them ends with them.
 */
export async function performTermination(
  deps: ExecuteDeps,
  run: PodRun,
  { actions, begin }: PlannedTermination,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  for (const action of actions) {
    if (failure !== undefined && action.do !== "stopSandboxes") break;
    begin(action);
    try {
      await (action.do === "together" ? performTogether(deps, run, { action, begin }) : perform(deps, run, action));
    } catch (error) {
      if (run.interrupt.aborted) throw error;
      failure ??= { error };
      if (action.do !== "killContainers") break;
    }
  }
  if (failure !== undefined) throw failure.error;
}

type Together = Extract<TerminationAction, { do: "together" }>;

async function performTogether(
  deps: ExecuteDeps,
  run: PodRun,
  { action, begin }: Pick<PlannedTermination, "begin"> & { action: Together },
): Promise<void> {
  const going = action.sequences.map((actions) => performTermination(deps, run, { actions, begin }));
  // Each to its end: the next try must not meet what is left of this one.
  for (const result of await Promise.allSettled(going)) if (result.status === "rejected") throw result.reason;
}

type Single = Exclude<TerminationAction, { do: "together" }>;

async function perform(deps: ExecuteDeps, run: PodRun, action: Single): Promise<void> {
  const pod = podIdentity(run.pod);
  const options = { signal: run.interrupt };
  switch (action.do) {
    case "killContainers":
      return killHungContainers(deps, run, action);
    case "stopSandboxes":
      return stopSandboxes(deps, run, action.sandboxIds);
    case "removeInstances":
      return removeInstances(deps, { ...action, pod }, options);
    case "unprepareClaims":
      return deps.claims?.unprepare(pod.uid, options);
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
