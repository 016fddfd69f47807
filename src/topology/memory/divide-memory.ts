import type { Container, Pod } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import type { Amounts } from "../demand.ts";

/** What a container has of its pod's memory. */
export interface MemoryPortion {
  readonly amounts: Amounts;
  /** False if it is what other containers of the pod have as well. */
  readonly isExclusive: boolean;
}

/**
 * Divides the memory of a pod among its containers: each gets what it asks for, and those that ask for nothing share the
 * rest. A container that initializes the pod has ended when others start, so that it can have everything but what
 * sidecars before it have. Pure.
 */
export function divideMemory(
  pod: Pod,
  { total, of }: { readonly total: Amounts; readonly of: (container: Container) => Amounts },
): ReadonlyMap<string, MemoryPortion> {
  const portions = new Map<string, MemoryPortion>();
  const rest = new Map(total);
  const take = (amounts: Amounts): void => {
    for (const [type, bytes] of amounts) rest.set(type, (rest.get(type) ?? 0) - bytes);
  };
  for (const container of pod.spec.initContainers ?? []) {
    const own = of(container);
    const isShared = own.size === 0;
    if (isShared && isSidecar(container)) continue;
    portions.set(container.name, { amounts: positive(isShared ? rest : own), isExclusive: !isShared });
    if (isSidecar(container)) take(own);
  }
  for (const container of pod.spec.containers) {
    const own = of(container);
    if (own.size === 0) continue;
    portions.set(container.name, { amounts: positive(own), isExclusive: true });
    take(own);
  }
  const shared: MemoryPortion = { amounts: positive(rest), isExclusive: false };
  for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    if (!portions.has(name)) portions.set(name, shared);
  }
  return portions;
}

function positive(amounts: Amounts): Amounts {
  return new Map([...amounts].filter(([, bytes]) => bytes > 0));
}
