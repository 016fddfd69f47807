import type { Pod } from "../../model/generated/types.ts";
import { CONFIG_SOURCE_ANNOTATION } from "../../model/labels.ts";
import { allContainers } from "../../model/pod-facts.ts";
import { unsupportedFields } from "../../model/pod-support.ts";
import type { WaitingReason } from "../status/derive-container.ts";

/** What pods may use of the host, by flags of older kubelets. Sources are `file`, `http`, `api`, or `*`. */
export interface SecurityRules {
  readonly allowPrivileged: boolean;
  readonly hostNetworkSources: readonly string[];
  readonly hostPIDSources: readonly string[];
  readonly hostIPCSources: readonly string[];
}

/**
 * Returns why nothing of this pod is started: the node forbids what it asks for, or this agent does not support it. A
 * waiting reason and not a Failed pod, which a controller would replace without end.
 */
export function refusalOf(pod: Pod, rules?: SecurityRules): WaitingReason | undefined {
  const forbidden = rules && forbiddenOf(pod, rules);
  // Reason and message of the kubelets that had these flags; they left such a pod Pending, too.
  if (forbidden !== undefined) {
    const message = `pod with UID "${pod.metadata.uid}" specified ${forbidden}, but is disallowed`;
    return { reason: "Blocked", message };
  }
  const { refused } = unsupportedFields(pod);
  if (refused.length === 0) return undefined;
  return {
    reason: "CreateContainerConfigError",
    message: `The pod uses fields that this version does not support and that it must not run without: ${refused.join("; ")}`,
  };
}

function forbiddenOf(pod: Pod, rules: SecurityRules): string | undefined {
  const { spec, metadata } = pod;
  const source = metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] ?? "";
  const isTrusted = (sources: readonly string[]): boolean => sources.includes("*") || sources.includes(source);
  const isPrivileged = allContainers(pod).some(({ securityContext }) => securityContext?.privileged === true);
  if (isPrivileged && !rules.allowPrivileged) return "privileged container";
  if (spec.hostNetwork === true && !isTrusted(rules.hostNetworkSources)) return "host networking";
  if (spec.hostPID === true && !isTrusted(rules.hostPIDSources)) return "host PID";
  if (spec.hostIPC === true && !isTrusted(rules.hostIPCSources)) return "host ipc";
  return undefined;
}
