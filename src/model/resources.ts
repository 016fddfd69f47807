import { ownValue } from "../lib/own-value.ts";
import type { Container, Pod } from "./generated/types.ts";
import { declaredContainers, isSidecar } from "./pod-facts.ts";
import {
  type Amount,
  addAmounts,
  formatQuantity,
  isZero,
  largerAmount,
  milliValue,
  parseQuantity,
  wholeValue,
} from "./quantity.ts";

/** Amounts by resource name (`cpu`, `memory`, `hugepages-2Mi` …). */
export type ResourceAmounts = Readonly<Record<string, Amount>>;

/** Resource texts as they stand in an object. */
export type ResourceTexts = Readonly<Record<string, string>>;

type Side = "requests" | "limits";

/** Reads the texts of one resource list. Throws `QuantityError`; those of a validated pod are all well. */
export function parseResources(texts: ResourceTexts | undefined): ResourceAmounts {
  return mapValues(texts ?? {}, parseQuantity);
}

/** The texts of a list, as an object has them. */
export function formatResources(amounts: ResourceAmounts): Record<string, string> {
  return mapValues(amounts, formatQuantity);
}

/** The sum per resource. */
export function addResources(a: ResourceAmounts, b: ResourceAmounts): ResourceAmounts {
  const sums = new Map(Object.entries(a));
  for (const [name, amount] of Object.entries(b)) join(sums, name, { amount, by: addAmounts });
  return Object.fromEntries(sums);
}

/** The requests of the pod as a whole: pod-level values if set, else the sum of its containers, plus overhead. */
export function podRequests(pod: Pod): ResourceAmounts {
  const own = parseResources(pod.spec.resources?.requests);
  return addResources({ ...containerTotals(pod, "requests"), ...own }, parseResources(pod.spec.overhead));
}

/** What the pod may use at most. Overhead raises only limits that exist: it must not create one. */
export function podLimits(pod: Pod): ResourceAmounts {
  const limits: ResourceAmounts = { ...containerTotals(pod, "limits"), ...parseResources(pod.spec.resources?.limits) };
  const overhead = parseResources(pod.spec.overhead);
  return mapValues(limits, (amount, name) => {
    const extra = ownValue(overhead, name);
    return extra === undefined || isZero(amount) ? amount : addAmounts(amount, extra);
  });
}

/**
 * What the containers need together at the worst moment: all regular ones and sidecars, or one init container beside
 * the sidecars that were started before it.
 */
export function containerTotals(pod: Pod, side: Side): ResourceAmounts {
  // The sums grow in place: each of thousands of containers may have resources that no other one has.
  const running = new Map<string, Amount>();
  const sidecars = new Map<string, Amount>();
  const startUp = new Map<string, Amount>();
  for (const container of pod.spec.containers) {
    for (const [name, amount] of ownResources(container, side)) join(running, name, { amount, by: addAmounts });
  }
  for (const container of pod.spec.initContainers ?? []) {
    for (const [name, amount] of ownResources(container, side)) {
      const before = sidecars.get(name);
      const beside = before === undefined ? amount : addAmounts(before, amount);
      join(startUp, name, { amount: beside, by: largerAmount });
      if (!isSidecar(container)) continue;
      sidecars.set(name, beside);
      join(running, name, { amount, by: addAmounts });
    }
  }
  for (const [name, amount] of startUp) join(running, name, { amount, by: largerAmount });
  return Object.fromEntries(running);
}

/** True when each regular and init container has a limit of this resource, or the pod as a whole has one. */
export function isLimited(pod: Pod, resource: "cpu" | "memory"): boolean {
  if (hasAmount(pod.spec.resources?.limits, resource)) return true;
  const containers = declaredContainers(pod);
  return containers.every((container) => hasAmount(container.resources?.limits, resource));
}

/** Millicores of a list; 0 when not named. */
export function cpuMilli(amounts: ResourceAmounts): number {
  return amounts.cpu === undefined ? 0 : milliValue(amounts.cpu);
}

/** Bytes (or pieces) of a resource in a list; undefined when not named. */
export function bytesOf(amounts: ResourceAmounts, resource: string): number | undefined {
  const amount = amounts[resource];
  return amount === undefined ? undefined : wholeValue(amount);
}

function hasAmount(texts: ResourceTexts | undefined, resource: string): boolean {
  const text = texts?.[resource];
  return text !== undefined && !isZero(parseQuantity(text));
}

function ownResources(container: Container, side: Side): readonly (readonly [string, Amount])[] {
  return Object.entries(container.resources?.[side] ?? {}).map(([name, text]) => [name, parseQuantity(text)]);
}

function join(
  sums: Map<string, Amount>,
  name: string,
  { amount, by }: { readonly amount: Amount; by(known: Amount, more: Amount): Amount },
): void {
  const known = sums.get(name);
  sums.set(name, known === undefined ? amount : by(known, amount));
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value, key)]));
}
