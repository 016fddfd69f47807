import type { Container, Pod, ResourceRequirements } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";
import { qosClass } from "../model/qos.ts";
import { milliValue, parseQuantity, wholeValue } from "../model/quantity.ts";

/**
 * True if containers of the pod can have something for themselves: it is Guaranteed by its containers. The managers of
 * Kubernetes leave pods with pod-level resources alone, unless the gate PodLevelResourceManagers is on.
 */
export function canHaveExclusive(pod: Pod): boolean {
  return qosClass(pod) === "Guaranteed" && !hasPodLevelResources(pod.spec.resources);
}

/** The number of whole CPUs that the container gets for itself; 0 if it shares. */
export function exclusiveCpus(pod: Pod, { resources }: Container): number {
  const request = resources?.requests?.["cpu"];
  if (request === undefined || !canHaveExclusive(pod)) return 0;
  const milli = milliValue(parseQuantity(request));
  return milli % 1000 === 0 ? milli / 1000 : 0;
}

/** Bytes of memory and of each size of huge pages that the container gets for itself. */
export function exclusiveMemory(pod: Pod, { resources }: Container): ReadonlyMap<string, number> {
  if (!canHaveExclusive(pod)) return new Map();
  const requests = Object.entries(resources?.requests ?? {});
  const counted = requests.filter(([name]) => name === "memory" || name.startsWith("hugepages-"));
  return new Map(counted.map(([name, text]) => [name, wholeValue(parseQuantity(text))]));
}

/** What all containers need at the worst moment: all that keep running, or one that initializes beside sidecars. */
export function podDemand(
  pod: Pod,
  of: (container: Container) => ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const running = new Map<string, number>();
  const initial = new Map<string, number>();
  const add = (container: Container): void => {
    for (const [name, amount] of of(container)) running.set(name, (running.get(name) ?? 0) + amount);
  };
  for (const container of pod.spec.initContainers ?? []) {
    if (isSidecar(container)) {
      add(container);
      continue;
    }
    for (const [name, amount] of of(container)) {
      initial.set(name, Math.max(initial.get(name) ?? 0, (running.get(name) ?? 0) + amount));
    }
  }
  for (const container of pod.spec.containers) add(container);
  const names = new Set([...running.keys(), ...initial.keys()]);
  return new Map([...names].map((name) => [name, Math.max(running.get(name) ?? 0, initial.get(name) ?? 0)]));
}

function hasPodLevelResources(resources: ResourceRequirements | undefined): boolean {
  const names = [...Object.keys(resources?.requests ?? {}), ...Object.keys(resources?.limits ?? {})];
  return names.some((name) => name === "cpu" || name === "memory" || name.startsWith("hugepages-"));
}
