import type { Pod } from "../model/generated/types.ts";
import { unsupportedFields } from "../model/pod-support.ts";
import type { WaitingReason } from "./derive-container.ts";

/**
 * Why nothing of this pod is started: it asks for what this agent cannot do. A waiting reason that names the fields and
 * not a Failed pod, which a controller would replace without end.
 */
export function refusalOf(pod: Pod): WaitingReason | undefined {
  const { refused } = unsupportedFields(pod);
  if (refused.length === 0) return undefined;
  return {
    reason: "CreateContainerConfigError",
    message: `The pod asks for what this version cannot do, and running without it would be wrong: ${refused.join("; ")}`,
  };
}
