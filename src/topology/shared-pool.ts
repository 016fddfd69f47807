import type { Container, Pod } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";
import type { Amounts } from "./demand.ts";

/** What a pod has as a whole, and what its containers take of it for themselves. */
export interface PodBudget {
  readonly total: Amounts;
  /** Empty for a container that shares the rest with others. */
  of(container: Container): Amounts;
}

/**
 * Why containers of the pod that share would have nothing to share, in Kubernetes' words: those with resources of their
 * own take everything; undefined if something is left. Pure.
 */
export function emptyPool(pod: Pod, { total, of }: PodBudget): string | undefined {
  const taken = new Map<string, number>();
  const take = (amounts: Amounts): void => {
    for (const [name, amount] of amounts) taken.set(name, (taken.get(name) ?? 0) + amount);
  };
  const exhausted = (): string | undefined =>
    [...total].find(([name, amount]) => (taken.get(name) ?? 0) >= amount)?.[0];
  let isShared = false;
  for (const container of pod.spec.initContainers ?? []) {
    const own = of(container);
    if (isSidecar(container)) {
      take(own);
      isShared ||= own.size === 0;
    } else if (own.size === 0) {
      const name = exhausted();
      if (name === undefined) continue;
      return `pod rejected, pod has shared init containers but no ${name === "cpu" ? "cpus" : name} available for them`;
    }
  }
  for (const container of pod.spec.containers) {
    const own = of(container);
    take(own);
    isShared ||= own.size === 0;
  }
  const name = isShared ? exhausted() : undefined;
  if (name === undefined) return undefined;
  const left = `leaving no ${name === "cpu" ? "cpus" : "memory"} for shared containers`;
  return `pod rejected, sum of exclusive container ${name} requests equals pod budget, ${left}`;
}
