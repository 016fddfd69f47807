import { ownValue } from "../../lib/own-value.ts";
import type { Pod } from "../../model/generated/types.ts";
import { milliValue, tryParseQuantity, wholeValue } from "../../model/quantity.ts";
import { podRequests } from "../../model/resources.ts";
import type { AdmissionFacts, AdmissionNode, Rejection } from "./facts.ts";

/** An insufficient resource of the node, in its smallest unit (millicores, bytes, pieces). */
export interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

/** The resources that every node has; others count only if the node reports them. */
const NATIVE = ["cpu", "memory", "ephemeral-storage"];

/** Returns the resources that are insufficient for this pod, in the order of Kubernetes. */
export function shortages(pod: Pod, { others, node }: AdmissionFacts): readonly Shortage[] {
  const asked = requestsOf(pod);
  const names = ["pods", ...NATIVE, ...Object.keys(asked).filter((name) => !NATIVE.includes(name) && name !== "pods")];
  return names.flatMap((resource) => {
    const capacity = capacityOf(node, resource);
    const requested = ownValue(asked, resource) ?? 0;
    if (capacity === undefined || requested === 0) return [];
    const used = others.map((other) => ownValue(requestsOf(other), resource) ?? 0).reduce((sum, each) => sum + each, 0);
    return requested + used > capacity ? [{ resource, requested, used, capacity }] : [];
  });
}

/** The rejection for an insufficient resource, with the message of Kubernetes. */
export function shortageProblem({ resource, requested, used, capacity }: Shortage): Rejection {
  const numbers = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message: `Node didn't have enough resource: ${resource}, ${numbers}` };
}

/** Returns the requests of a pod as plain numbers, and 1 of `pods`. */
export function requestsOf(pod: Pod): Readonly<Record<string, number>> {
  const amounts = Object.entries(podRequests(pod)).map(
    ([name, amount]) => [name, name === "cpu" ? milliValue(amount) : wholeValue(amount)] as const,
  );
  return { ...Object.fromEntries(amounts), pods: 1 };
}

function capacityOf({ allocatable }: AdmissionNode, resource: string): number | undefined {
  const amount = tryParseQuantity(ownValue(allocatable, resource) ?? "");
  if (amount === undefined) return undefined;
  return resource === "cpu" ? milliValue(amount) : wholeValue(amount);
}
