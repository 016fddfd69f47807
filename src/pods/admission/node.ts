import type { Pod } from "../../model/generated/types.ts";
import { APPARMOR_ANNOTATION_PREFIX } from "../../model/labels.ts";
import { selectsNode, untolerated } from "../../model/node-fit.ts";
import { allContainers, declaredContainers, isStaticPod } from "../../model/pod-facts.ts";
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

/** Resources of a pod as a whole need their gate. */
export function podLevelProblem({ spec }: Pod, { node }: AdmissionFacts): Rejection | undefined {
  const { requests = {}, limits = {} } = spec.resources ?? {};
  const names = [...Object.keys(requests), ...Object.keys(limits)];
  const isSet = names.some((name) => name === "cpu" || name === "memory" || name.startsWith("hugepages-"));
  if (node.hasPodLevelResources !== false || !isSet) return undefined;
  return { reason: "PodLevelResourcesNotSupported", message: "PodLevelResources feature gate is disabled" };
}

/** What a pod needs of the features that nodes declare. */
const NEEDED_FEATURES: readonly (readonly [string, (pod: Pod) => boolean])[] = [
  [
    "RestartAllContainersOnContainerExits",
    (pod) =>
      declaredContainers(pod).some(({ restartPolicyRules }) =>
        (restartPolicyRules ?? []).some(({ action }) => action === "RestartAllContainers"),
      ),
  ],
  ["UserNamespacesHostNetworkSupport", ({ spec }) => spec.hostNetwork === true && spec.hostUsers === false],
];

/** A pod that needs a feature which the node does not declare. */
export function featuresProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  const { declaredFeatures } = node;
  if (declaredFeatures === undefined) return undefined;
  const missing = NEEDED_FEATURES.filter(([name, isNeeded]) => !declaredFeatures.includes(name) && isNeeded(pod));
  if (missing.length === 0) return undefined;
  const names = missing.map(([name]) => name).join(", ");
  return { reason: "PodFeatureUnsupported", message: `Pod requires node features that are not available: ${names}` };
}

/** The node selector, and the required node affinity. */
export function affinityProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  if (selectsNode(pod, node)) return undefined;
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
  if (untolerated(pod, noExecute, node).length === 0) return undefined;
  return predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate");
}

function predicate(name: string, why: string): Rejection {
  return { reason: name, message: `Predicate ${name} failed: ${why}` };
}
