import type { Pod } from "../model/generated/types.ts";
import { timeOf } from "./time-text.ts";

/** True for a pod that has ended and never runs again. */
export function isTerminal({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

export function isReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

/** When the pod became ready, in milliseconds; undefined if it is not. */
export function readySince(pod: Pod): number | undefined {
  return isReady(pod) ? timeOf(readyCondition(pod)?.lastTransitionTime) : undefined;
}

/** How long until a pod is available, in milliseconds: 0 if it is, undefined if it is not ready. */
export function availableAfterMs(pod: Pod, minReadySeconds: number, nowMs: number): number | undefined {
  if (!isReady(pod)) return undefined;
  if (minReadySeconds === 0) return 0;
  const since = readySince(pod);
  return since === undefined ? undefined : Math.max(0, since + minReadySeconds * 1000 - nowMs);
}

/** Whether a pod has been ready for long enough. */
export function isAvailable(pod: Pod, minReadySeconds: number, nowMs: number): boolean {
  return availableAfterMs(pod, minReadySeconds, nowMs) === 0;
}

/** When the next of these pods becomes available by time alone, in milliseconds. */
export function nextAvailableMs(pods: readonly Pod[], minReadySeconds: number, nowMs: number): number | undefined {
  const waits = pods
    .map((pod) => availableAfterMs(pod, minReadySeconds, nowMs))
    .filter((ms): ms is number => ms !== undefined && ms > 0);
  return waits.length === 0 ? undefined : Math.min(...waits);
}

function readyCondition({ status }: Pod) {
  return status?.conditions?.find(({ type }) => type === "Ready");
}
