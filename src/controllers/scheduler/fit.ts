import type { Node, Pod, Taint } from "../../model/generated/types.ts";
import { clashesOnPorts, selectsNode, shortagesOf, untolerated } from "../../model/node-fit.ts";

/** Why a pod cannot run on a node, in the words of Kubernetes' scheduler. */
export interface Misfit {
  readonly reason: string;
  /** True if it could run there once other pods are gone. */
  readonly helpsToPreempt: boolean;
}

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
const NOT_READY: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };

/** All reasons why a pod does not fit a node beside others; none if it does. Pure. */
export function misfitsOf(pod: Pod, node: Node, others: readonly Pod[]): readonly Misfit[] {
  const hard = (reason: string): readonly Misfit[] => [{ reason, helpsToPreempt: false }];
  const taints = taintsOf(node);
  const isCordoned = untolerated(pod, taints).some(({ key }) => key === UNSCHEDULABLE.key);
  if (isCordoned) return hard("node(s) were unschedulable");
  const [taint] = untolerated(pod, taints);
  // The first taint is the one that is reported, as by the original.
  if (taint !== undefined) return hard("node(s) had untolerated taint(s)");
  const labels = node.metadata.labels ?? {};
  if (!selectsNode(pod, { name: node.metadata.name ?? "", labels })) {
    return hard("node(s) didn't match Pod's node affinity/selector");
  }
  if (clashesOnPorts(pod, others)) {
    return [{ reason: "node(s) didn't have free ports for the requested pod ports", helpsToPreempt: true }];
  }
  const allocatable = node.status?.allocatable ?? node.status?.capacity ?? {};
  return shortagesOf(pod, { allocatable, others }).map(({ resource, requested, capacity }) => ({
    reason: resource === "pods" ? "Too many pods" : `Insufficient ${resource}`,
    helpsToPreempt: requested <= capacity,
  }));
}

/** What keeps pods from a node: its taints, and the state that a cluster has a controller turn into taints. */
function taintsOf({ spec, status }: Node): readonly Taint[] {
  const isReady = status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  const taints = (spec?.taints ?? []).filter(({ effect }) => effect === "NoSchedule" || effect === "NoExecute");
  const has = (key: string): boolean => taints.some((taint) => taint.key === key);
  return [
    ...(spec?.unschedulable && !has(UNSCHEDULABLE.key) ? [UNSCHEDULABLE] : []),
    ...taints,
    ...(isReady || has(NOT_READY.key) ? [] : [NOT_READY]),
  ];
}

/** The message about a pod that fits none of the nodes. */
export function unschedulableMessage(misfits: readonly (readonly Misfit[])[]): string {
  const count = misfits.length;
  if (count === 0) return "no nodes available to schedule pods";
  const counts = new Map<string, number>();
  for (const { reason } of misfits.flat()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const reasons = [...counts].map(([reason, times]) => `${times} ${reason}`).sort();
  const helped = misfits.filter((one) => one.every(({ helpsToPreempt }) => helpsToPreempt)).length;
  const preemption = [
    ...(helped > 0 ? [`${helped} No preemption victims found for incoming pod`] : []),
    ...(helped < count ? [`${count - helped} Preemption is not helpful for scheduling`] : []),
  ];
  const none = `0/${count} nodes are available`;
  return `${none}: ${reasons.join(", ")}. no new claims to deallocate, preemption: ${none}: ${preemption.join(", ")}.`;
}
