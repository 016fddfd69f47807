import type {
  ContainerStatus,
  Pod,
  PodFailurePolicy,
  PodFailurePolicyOnExitCodesRequirement,
} from "../../model/generated/types.ts";

/** What a failure policy says about a failed pod. */
export interface FailureVerdict {
  readonly action?: string;
  /** Whether the failure counts against the limits. */
  readonly counts: boolean;
  /** Why the whole job fails, if it does. */
  readonly message?: string;
}

/** The first rule that matches a failed pod decides; without one the failure counts. Pure. */
export function judgeFailure(policy: PodFailurePolicy | undefined, pod: Pod): FailureVerdict {
  for (const [index, { action, onExitCodes, onPodConditions }] of (policy?.rules ?? []).entries()) {
    const reason = onExitCodes ? exitReason(pod, onExitCodes) : conditionReason(pod, onPodConditions ?? []);
    if (reason === undefined) continue;
    if (action === "Ignore") return { action, counts: false };
    if (action === "FailJob") {
      return { action, counts: true, message: `${reason} matching ${action} rule at index ${index}` };
    }
    return { action, counts: true };
  }
  return { counts: true };
}

function exitReason(
  { metadata, status }: Pod,
  requirement: PodFailurePolicyOnExitCodesRequirement,
): string | undefined {
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  const found = statuses.find((container) => matchesExit(container, requirement));
  if (found === undefined) return undefined;
  const { namespace, name } = metadata;
  return `Container ${found.name} for pod ${namespace}/${name} failed with exit code ${found.state?.terminated?.exitCode}`;
}

function matchesExit(
  { name, state }: ContainerStatus,
  { containerName, operator, values }: PodFailurePolicyOnExitCodesRequirement,
): boolean {
  const code = state?.terminated?.exitCode;
  if (code === undefined || code === 0 || (containerName !== undefined && containerName !== name)) return false;
  return operator === "In" ? values.includes(code) : operator === "NotIn" && !values.includes(code);
}

function conditionReason(
  { metadata, status }: Pod,
  patterns: readonly { readonly type: string; readonly status?: string }[],
): string | undefined {
  const found = status?.conditions?.find((condition) =>
    patterns.some(({ type, status: wanted = "True" }) => type === condition.type && wanted === condition.status),
  );
  return found && `Pod ${metadata.namespace}/${metadata.name} has condition ${found.type}`;
}
