import { firstBytes } from "../../lib/bounded-text.ts";
import type { ContainerState, ContainerStatus } from "../../model/generated/types.ts";

/** The limit of all termination messages of a pod together, in bytes, as in Kubernetes. */
const POD_BYTES = 12 * 1024;

/** Each container's share of the 12 KiB that a pod's termination messages may take. */
export function messageLimit(containers: number): number {
  return Math.floor(POD_BYTES / Math.max(1, containers));
}

/** The status with its termination messages cut to so many bytes. */
export function withinLimit(status: ContainerStatus, bytes: number): ContainerStatus {
  return {
    ...status,
    ...(status.state === undefined ? {} : { state: cutState(status.state, bytes) }),
    ...(status.lastState === undefined ? {} : { lastState: cutState(status.lastState, bytes) }),
  };
}

function cutState(state: ContainerState, bytes: number): ContainerState {
  const message = state.terminated?.message;
  if (state.terminated === undefined || message === undefined) return state;
  const kept = firstBytes(message, bytes);
  return kept === message ? state : { ...state, terminated: { ...state.terminated, message: kept } };
}
