import { ownValue } from "../../lib/own-value.ts";
import type { Pod } from "../../model/generated/types.ts";
import { isCriticalPod } from "../../model/pod-facts.ts";
import { type QosClass, qosClass } from "../../model/qos.ts";
import { requestsOf, type Shortage } from "./resources.ts";

/** What is still missing, by resource, in the numbers of `requestsOf`. */
type Missing = Readonly<Record<string, number>>;

/** What stays missing of a resource when every preemptable pod is gone. */
export interface UnmetRequest {
  readonly resource: string;
  readonly amount: number;
}

/**
 * Returns the pods to preempt so that a critical one fits: as few Guaranteed ones as possible, then as few Burstable
 * ones, then BestEffort ones. If not even all of them free enough, there are no victims and `unmet` says why. Pure.
 */
export function chooseVictims(
  pod: Pod,
  others: readonly Pod[],
  shortages: readonly Shortage[],
): { readonly victims: readonly Pod[]; readonly unmet: readonly UnmetRequest[] } {
  const missing: Missing = Object.fromEntries(
    shortages.map(({ resource, requested, used, capacity }) => [resource, requested + used - capacity]),
  );
  const candidates = others.filter((other) => mayPreempt(pod, other));
  const unmet = Object.entries(without(missing, candidates)).filter(([, amount]) => amount > 0);
  if (unmet.length > 0) return { victims: [], unmet: unmet.map(([resource, amount]) => ({ resource, amount })) };
  const of = (name: QosClass): readonly Pod[] => candidates.filter((candidate) => qosClass(candidate) === name);
  const guaranteed = closest(of("Guaranteed"), without(missing, [...of("BestEffort"), ...of("Burstable")]));
  const burstable = closest(of("Burstable"), without(missing, [...of("BestEffort"), ...guaranteed]));
  const bestEffort = closest(of("BestEffort"), without(missing, [...burstable, ...guaranteed]));
  return { victims: [...bestEffort, ...burstable, ...guaranteed], unmet: [] };
}

/** True if the pod may preempt the other: a critical pod any that is not, otherwise by priority. */
export function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCriticalPod(pod) && !isCriticalPod(other)) return true;
  return (pod.spec.priority ?? 0) > (other.spec.priority ?? 0);
}

/** Picks the pod whose requests come nearest to what is missing, until nothing is. */
function closest(pods: readonly Pod[], missing: Missing): readonly Pod[] {
  const left = [...pods];
  const chosen: Pod[] = [];
  let open = missing;
  while (!isEmpty(open) && left.length > 0) {
    const [best] = left.toSorted((a, b) => distance(a, open) - distance(b, open) || bySize(a, b));
    if (best === undefined) break;
    left.splice(left.indexOf(best), 1);
    chosen.push(best);
    open = without(open, [best]);
  }
  return chosen;
}

/** The sum of the squared shares that would still be missing without this pod. */
function distance(pod: Pod, missing: Missing): number {
  const requests = requestsOf(pod);
  return Object.entries(missing)
    .filter(([, amount]) => amount > 0)
    .map(([name, amount]) => (Math.max(0, amount - (ownValue(requests, name) ?? 0)) / amount) ** 2)
    .reduce((sum, each) => sum + each, 0);
}

/** Of two at the same distance the one with smaller requests is picked. */
function bySize(a: Pod, b: Pod): number {
  const [x, y] = [requestsOf(a), requestsOf(b)];
  return (x["memory"] ?? 0) - (y["memory"] ?? 0) || (x["cpu"] ?? 0) - (y["cpu"] ?? 0);
}

function without(missing: Missing, pods: readonly Pod[]): Missing {
  const freed = pods.map(requestsOf);
  return Object.fromEntries(
    Object.entries(missing).map(([name, amount]) => {
      const sum = freed.reduce((total, requests) => total + (ownValue(requests, name) ?? 0), 0);
      return [name, amount - sum];
    }),
  );
}

function isEmpty(missing: Missing): boolean {
  return Object.values(missing).every((amount) => amount <= 0);
}
