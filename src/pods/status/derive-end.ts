import type { ContainerStatus, Pod } from "../../model/generated/types.ts";
import { isSidecarOf } from "./derive-conditions.ts";

/**
 * The statuses of a pod that has stopped for good: as in Kubernetes, a container of an initialized pod cannot be
 * waiting or running any more, and neither can the init containers up to the last one that was ever started.
 */
export function endedStatuses(
  pod: Pod,
  { init, regular }: { init: readonly ContainerStatus[]; regular: readonly ContainerStatus[] },
  previousInit: readonly ContainerStatus[],
): { init: readonly ContainerStatus[]; regular: readonly ContainerStatus[] } {
  const lastBegun = init.findLastIndex(hasBegun);
  return {
    // The first one counts also when it never began.
    init: init.map((status, index) => (index <= Math.max(0, lastBegun) ? ended(status) : status)),
    regular: regular.some(hasBegun) || isInitialized(pod, init, previousInit) ? regular.map(ended) : regular,
  };
}

/** A sidecar is judged by its status from before the kill: now no container runs any more. */
function isInitialized(pod: Pod, init: readonly ContainerStatus[], previousInit: readonly ContainerStatus[]): boolean {
  const last = init.at(-1);
  if (last === undefined) return true;
  if (isSidecarOf(pod, last.name)) {
    const before = previousInit.find(({ name }) => name === last.name);
    return before?.state?.running !== undefined && before.started === true;
  }
  return last.state?.terminated?.exitCode === 0 || last.lastState?.terminated?.exitCode === 0;
}

function hasBegun(status: ContainerStatus): boolean {
  return status.state?.waiting === undefined || status.lastState?.terminated !== undefined;
}

function ended(status: ContainerStatus): ContainerStatus {
  if (status.state?.terminated !== undefined) return status;
  const message = "The container could not be located when the pod was terminated";
  const terminated = { reason: "ContainerStatusUnknown", exitCode: 137, message };
  return {
    ...status,
    ready: false,
    ...(status.started === undefined ? {} : { started: false }),
    state: { terminated },
  };
}
