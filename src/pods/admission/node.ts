import { ownValue } from "../../lib/own-value.ts";
import type { Pod, Taint, Toleration } from "../../model/generated/types.ts";
import { APPARMOR_ANNOTATION_PREFIX } from "../../model/labels.ts";
import { matchesNodeSelector } from "../../model/node-selector.ts";
import { allContainers, isStaticPod } from "../../model/pod-facts.ts";
import type { AdmissionFacts, Rejection } from "./facts.ts";

const OS_LABEL = "kubernetes.io/os";

/** The operating system that the pod asks for, by its own label or by its field, as in Kubernetes. */
export function osProblem(pod: Pod): Rejection | undefined {
  const asked = pod.metadata.labels?.[OS_LABEL];
  if (asked !== undefined && asked !== "linux") {
    const message = `Failed to admit pod as the \`${OS_LABEL}\` label doesn't match node label`;
    return { reason: "PodOSSelectorNodeLabelDoesNotMatch", message };
  }
  if (pod.spec.os === undefined || pod.spec.os.name === "linux") return undefined;
  return { reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS" };
}

/** A node that shuts down takes no pod any more. */
export function shutdownProblem(_pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  if (node.isShuttingDown !== true) return undefined;
  return { reason: "NodeShutdown", message: "Pod was rejected as the node is shutting down." };
}

/** supplementalGroupsPolicy Strict needs a runtime that supports it. */
export function groupsProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  if (pod.spec.securityContext?.supplementalGroupsPolicy !== "Strict" || node.hasStrictGroups !== false)
    return undefined;
  const message = "SupplementalGroupsPolicy=Strict is not supported in this node";
  return { reason: "SupplementalGroupsPolicyNotSupported", message };
}

/** A pod with an AppArmor profile needs a kernel with AppArmor enabled. */
export function appArmorProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  if (node.hasAppArmor || (pod.status?.phase ?? "Pending") !== "Pending" || !asksForAppArmor(pod)) return undefined;
  return { reason: "AppArmor", message: "Cannot enforce AppArmor: AppArmor is not enabled on the host" };
}

function asksForAppArmor(pod: Pod): boolean {
  const isAny = (type: string | undefined): boolean => type !== undefined && type !== "Unconfined";
  if (isAny(pod.spec.securityContext?.appArmorProfile?.type)) return true;
  return allContainers(pod).some(({ name, securityContext }) => {
    const annotated = pod.metadata.annotations?.[`${APPARMOR_ANNOTATION_PREFIX}${name}`];
    const isAnnotated = annotated !== undefined && annotated !== "" && annotated !== "unconfined";
    return isAny(securityContext?.appArmorProfile?.type) || isAnnotated;
  });
}

/** The node selector, and the required node affinity. */
export function affinityProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  const selector = Object.entries(pod.spec.nodeSelector ?? {});
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const isSelected = selector.every(([key, value]) => ownValue(node.labels, key) === value);
  const isAffine = required === undefined || matchesNodeSelector(required, node);
  if (isSelected && isAffine) return undefined;
  return predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector");
}

/** A pod that is bound to another node. */
export function nameProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  const asked = pod.spec.nodeName ?? "";
  if (asked === "" || asked === node.name) return undefined;
  return predicate("NodeName", "node(s) didn't match the requested node name");
}

/** NoExecute taints; static pods are exempt. */
export function taintProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  if (isStaticPod(pod)) return undefined;
  const noExecute = node.taints.filter(({ effect }) => effect === "NoExecute");
  const isTolerated = (taint: Taint): boolean => (pod.spec.tolerations ?? []).some((one) => tolerates(one, taint));
  if (noExecute.every(isTolerated)) return undefined;
  return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate");
}

/** True if a toleration covers a taint: an empty key with Exists covers all, an empty effect covers every effect. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return (toleration.key ?? "") !== "" && (toleration.value ?? "") === (taint.value ?? "");
}

function predicate(name: string, why: string): Rejection {
  return { reason: name, message: `Predicate ${name} failed: ${why}` };
}
