import { ownValue } from "../../lib/own-value.ts";
import type { DaemonSet, Node, Pod, PodSpec, PodTemplateSpec, Toleration } from "../../model/generated/types.ts";
import { selectsNode, untolerated } from "../../model/node-fit.ts";

export const HASH_LABEL = "controller-revision-hash";
const GENERATION_LABEL = "pod-template-generation";
const GENERATION_ANNOTATION = "deprecated.daemonset.template.generation";

const TOLERATED: readonly Toleration[] = [
  { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/disk-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/pid-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/unschedulable", operator: "Exists", effect: "NoSchedule" },
];
const NO_NETWORK: Toleration = {
  key: "node.kubernetes.io/network-unavailable",
  operator: "Exists",
  effect: "NoSchedule",
};

/** The spec of a daemon pod, which tolerates what a node goes through. Pure. */
function tolerant(spec: PodSpec): PodSpec {
  const added = [...TOLERATED, ...(spec.hostNetwork === true ? [NO_NETWORK] : [])];
  const isAdded = ({ key, effect, operator, value = "" }: Toleration): boolean =>
    added.some((one) => one.key === key && one.effect === effect && one.operator === operator && value === "");
  return { ...spec, tolerations: [...(spec.tolerations ?? []).filter((one) => !isAdded(one)), ...added] };
}

/** The template of a daemon pod for one node; the scheduler binds it there. Pure. */
export function daemonTemplate(
  { metadata, spec }: DaemonSet,
  { nodeName, hash }: { readonly nodeName: string; readonly hash: string },
): PodTemplateSpec {
  const { template } = spec;
  const generation = ownValue(metadata.annotations, GENERATION_ANNOTATION);
  const labels = {
    ...template.metadata?.labels,
    ...(generation !== undefined && { [GENERATION_LABEL]: generation }),
    ...(hash !== "" && { [HASH_LABEL]: hash }),
  };
  const pod = tolerant(template.spec ?? { containers: [] });
  const nodeSelectorTerms = [{ matchFields: [{ key: "metadata.name", operator: "In", values: [nodeName] }] }];
  const nodeAffinity = {
    ...pod.affinity?.nodeAffinity,
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
  };
  return {
    metadata: { ...template.metadata, labels },
    spec: { ...pod, affinity: { ...pod.affinity, nodeAffinity } },
  };
}

/** The node that a daemon pod runs on or was made for. */
export function nodeOf({ spec }: Pod): string {
  if (spec.nodeName) return spec.nodeName;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const fields = terms.flatMap(({ matchFields = [] }) => matchFields);
  return fields.find(({ key }) => key === "metadata.name")?.values?.[0] ?? "";
}

/** Whether a set's pod belongs on a node, and whether one that is there may stay. Pure. */
export function fitOf({ spec }: DaemonSet, node: Node): { readonly runs: boolean; readonly stays: boolean } {
  const { name = "", labels = {} } = node.metadata;
  const wanted = spec.template.spec ?? { containers: [] };
  const pod: Pod = { metadata: {}, spec: tolerant(wanted) };
  const isNamed = !wanted.nodeName || wanted.nodeName === name;
  if (!isNamed || !selectsNode(pod, { name, labels })) return { runs: false, stays: false };
  const taints = untolerated(pod, node.spec?.taints ?? []);
  const hard = taints.filter(({ effect }) => effect === "NoSchedule" || effect === "NoExecute");
  return { runs: hard.length === 0, stays: !hard.some(({ effect }) => effect === "NoExecute") };
}
