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
  return combine(a, b, addAmounts);
}

/** The larger per resource. */
export function maxResources(a: ResourceAmounts, b: ResourceAmounts): ResourceAmounts {
  return combine(a, b, largerAmount);
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
  let running: ResourceAmounts = {};
  for (const container of pod.spec.containers) running = addResources(running, ownResources(container, side));
  let sidecars: ResourceAmounts = {};
  let startUp: ResourceAmounts = {};
  for (const container of pod.spec.initContainers ?? []) {
    const step = addResources(sidecars, ownResources(container, side));
    startUp = maxResources(startUp, step);
    if (isSidecar(container)) {
      sidecars = step;
      running = addResources(running, ownResources(container, side));
    }
  }
  return maxResources(running, startUp);
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

function ownResources(container: Container, side: Side): ResourceAmounts {
  return parseResources(container.resources?.[side]);
}

function combine(a: ResourceAmounts, b: ResourceAmounts, join: (x: Amount, y: Amount) => Amount): ResourceAmounts {
  const result: Record<string, Amount> = { ...a };
  for (const [name, amount] of Object.entries(b)) {
    const known = ownValue(result, name);
    result[name] = known === undefined ? amount : join(known, amount);
  }
  return result;
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value, key)]));
}
