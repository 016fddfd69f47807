import { type CpuSet, NO_CPUS, unionOf, without } from "../../model/cpu-set.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";

/** What a container has of its pod's CPUs. */
export interface CpuPortion {
  readonly cpus: CpuSet;
  /** False if other containers of the pod have the same CPUs. */
  readonly isExclusive: boolean;
}

interface Dividing {
  /** What the pod has as a whole. */
  readonly cpus: CpuSet;
  /** How many CPUs a container gets for itself; 0 if it shares. */
  wanted(container: Container): number;
  /** Chooses CPUs. Throws an Error if there are not enough. */
  take(from: CpuSet, count: number): CpuSet;
}

/**
 * Divides the CPUs of a pod among its containers: each gets as many as it asks for, and those that ask for none share the
 * rest. A container that initializes the pod has ended when others start, so that it can have everything but what
 * sidecars before it have. Throws an Error if the containers ask for more than the pod. Pure.
 */
export function divideCpus(pod: Pod, { cpus, wanted, take }: Dividing): ReadonlyMap<string, CpuPortion> {
  const portions = new Map<string, CpuPortion>();
  let sidecars: CpuSet = NO_CPUS;
  for (const container of pod.spec.initContainers ?? []) {
    const free = without(cpus, sidecars);
    const count = wanted(container);
    if (count > 0) {
      const own = take(free, count);
      portions.set(container.name, { cpus: own, isExclusive: true });
      if (isSidecar(container)) sidecars = unionOf(sidecars, own);
    } else if (!isSidecar(container)) portions.set(container.name, { cpus: free, isExclusive: false });
  }
  let rest = without(cpus, sidecars);
  for (const container of pod.spec.containers) {
    const count = wanted(container);
    if (count === 0) continue;
    const own = take(rest, count);
    portions.set(container.name, { cpus: own, isExclusive: true });
    rest = without(rest, own);
  }
  for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    if (!portions.has(name)) portions.set(name, { cpus: rest, isExclusive: false });
  }
  return portions;
}
