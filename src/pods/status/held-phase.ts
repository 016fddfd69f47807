import type { PodStatus } from "../../model/generated/types.ts";
import { isTerminalPhase } from "./derive-phase.ts";

/**
 * The status to show while something of the node is still the pod's: a terminal phase would let the scheduler hand it
 * out again, so the phase before it stays, as in Kubernetes. Pure.
 */
export function withHeldPhase(status: PodStatus, shown: PodStatus | undefined): PodStatus {
  if (!isTerminalPhase(status.phase) || isTerminalPhase(shown?.phase)) return status;
  const { phase: _phase, reason: _reason, message: _message, ...rest } = status;
  return {
    ...rest,
    phase: shown?.phase ?? "Pending",
    ...(shown?.reason !== undefined && { reason: shown.reason }),
    ...(shown?.message !== undefined && { message: shown.message }),
    conditions: status.conditions?.filter(({ type }) => type !== "DisruptionTarget"),
  };
}
