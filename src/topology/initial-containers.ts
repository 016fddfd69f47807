import type { Pod } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";

/** The containers of a pod that complete before others start: init containers, but not sidecars. */
export interface InitialContainers {
  /** In the order in which they run. */
  readonly names: readonly string[];
  has(container: string): boolean;
  /** How many of them complete before the container starts. */
  countBefore(container: string): number;
}

const known = new WeakMap<Pod, InitialContainers>();

/** Returns those of the pod. They are found once: there may be thousands, and each container is asked about. */
export function initialContainers(pod: Pod): InitialContainers {
  const before = known.get(pod);
  if (before !== undefined) return before;
  const names: string[] = [];
  const counts = new Map<string, number>();
  const own = new Set<string>();
  for (const container of pod.spec.initContainers ?? []) {
    counts.set(container.name, names.length);
    if (isSidecar(container)) continue;
    names.push(container.name);
    own.add(container.name);
  }
  const found: InitialContainers = {
    names,
    has: (container) => own.has(container),
    countBefore: (container) => counts.get(container) ?? names.length,
  };
  known.set(pod, found);
  return found;
}
