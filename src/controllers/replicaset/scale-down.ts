import { ownValue } from "../../lib/own-value.ts";
import type { Pod } from "../../model/generated/types.ts";
import { isReady, readySince } from "../pod-state.ts";
import { timeOf } from "../time-text.ts";

const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";
const PHASES: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };

/**
 * Pods in the order in which a smaller set loses them, as in Kubernetes: those without a node, pending, not ready, of a
 * lower deletion cost, ready for a shorter time, restarted more often, younger. Pure.
 */
export function deletionOrder(pods: readonly Pod[], nowMs: number): readonly Pod[] {
  return [...pods].sort((a, b) => compare(a, b, nowMs));
}

function compare(a: Pod, b: Pod, nowMs: number): number {
  const steps: readonly (() => number)[] = [
    () => Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName)),
    () => phaseRank(a) - phaseRank(b),
    () => Number(isReady(a)) - Number(isReady(b)),
    () => deletionCost(a) - deletionCost(b),
    () => compareAges({ a, b, nowMs }, readySince),
    () => restartsOf(b) - restartsOf(a),
    () => compareAges({ a, b, nowMs }, ({ metadata }) => timeOf(metadata.creationTimestamp)),
  ];
  for (const step of steps) {
    const order = step();
    if (order !== 0) return order;
  }
  return 0;
}

function phaseRank({ status }: Pod): number {
  return PHASES[status?.phase ?? "Pending"] ?? 0;
}

function deletionCost({ metadata }: Pod): number {
  const text = ownValue(metadata.annotations, DELETION_COST) ?? "0";
  return /^-?(0|[1-9]\d*)$/.test(text) ? Number(text) : 0;
}

/** Restarts of the container that was restarted most. */
function restartsOf({ status }: Pod): number {
  return Math.max(0, ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount));
}

/** Younger first; ages that differ by less than a factor of two count as equal and are decided by UID. */
function compareAges(
  { a, b, nowMs }: { readonly a: Pod; readonly b: Pod; readonly nowMs: number },
  since: (pod: Pod) => number | undefined,
): number {
  const [sinceA, sinceB] = [since(a), since(b)];
  if (sinceA === sinceB) return 0;
  if (sinceA === undefined || sinceB === undefined) return sinceA === undefined ? -1 : 1;
  // By nanoseconds, as the original counts.
  const magnitude = (at: number): number => (nowMs > at ? Math.floor(Math.log2((nowMs - at) * 1e6)) : -1);
  const difference = magnitude(sinceA) - magnitude(sinceB);
  return difference === 0 ? ((a.metadata.uid ?? "") < (b.metadata.uid ?? "") ? -1 : 1) : difference;
}
