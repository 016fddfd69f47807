import type { Pod, ResourceRequirements } from "./generated/types.ts";
import { declaredContainers } from "./pod-facts.ts";
import { type Amount, addAmounts, compareAmounts, parseQuantity } from "./quantity.ts";

/** How well a pod is protected when the node runs short. */
export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

const COUNTED = ["cpu", "memory"] as const;

/** The class that the status names, else the one that follows from cpu and memory requests and limits. */
export function qosClass(pod: Pod): QosClass {
  const known = pod.status?.qosClass;
  if (known === "Guaranteed" || known === "Burstable" || known === "BestEffort") return known;
  return deriveQosClass(pod);
}

/** The class by the spec alone. Ephemeral containers do not count. */
export function deriveQosClass(pod: Pod): QosClass {
  const parts = hasPodLevel(pod.spec.resources)
    ? [pod.spec.resources]
    : declaredContainers(pod).map((container) => container.resources);
  const requests = new Map<string, Amount>();
  const limits = new Map<string, Amount>();
  let isEachLimited = true;
  for (const part of parts) {
    for (const name of COUNTED) {
      addTo(requests, name, part?.requests?.[name]);
      if (!addTo(limits, name, part?.limits?.[name])) isEachLimited = false;
    }
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  if (!isEachLimited) return "Burstable";
  const isEqual = COUNTED.every((name) => {
    const request = requests.get(name);
    const limit = limits.get(name);
    return request !== undefined && limit !== undefined && compareAmounts(request, limit) === 0;
  });
  return isEqual ? "Guaranteed" : "Burstable";
}

function hasPodLevel(resources: ResourceRequirements | undefined): boolean {
  return COUNTED.some((name) => resources?.requests?.[name] !== undefined || resources?.limits?.[name] !== undefined);
}

/** Adds a positive amount; true if there was one. */
function addTo(sums: Map<string, Amount>, name: string, text: string | undefined): boolean {
  if (text === undefined) return false;
  const amount = parseQuantity(text);
  if (amount.nano <= 0n) return false;
  const known = sums.get(name);
  sums.set(name, known === undefined ? amount : addAmounts(known, amount));
  return true;
}
