import type { Instant } from "../../lib/clock.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";

/** How many terminated instances are kept, and how long at least. */
export interface DeadLimits {
  /** Of one container; negative means all of them. */
  readonly perContainer: number;
  readonly minAgeMs: number;
  /** True for an instance that is removed before its time, because the node has too many in all. */
  isDiscarded?(id: string): boolean;
}

/** One, for `logs --previous`, as Kubernetes keeps. */
export const DEFAULT_DEAD_LIMITS: DeadLimits = { perContainer: 1, minAgeMs: 0 };

export interface Pruning {
  readonly containers: readonly ObservedContainer[];
  readonly sandboxIds: readonly string[];
  /** When there will be more to remove, if nothing else changes. */
  readonly afterMs?: number;
}

/**
 * Returns what of a pod can be removed: terminated instances beyond the limits, and empty old sandboxes. The newest
 * instance of a container is kept whatever the limits are: the pod's status is derived from it. Pure.
 */
export function prunePod(observed: ObservedPod, limits: DeadLimits, now: Instant): Pruning {
  const containers: ObservedContainer[] = [];
  const seen = new Set<string>();
  const kept = new Map<string, number>();
  const occupied = new Set<string>();
  let afterMs = Number.POSITIVE_INFINITY;
  for (const container of observed.containers) {
    const { id, name, state, finishedAt, sandboxId } = container;
    const isNewest = !seen.has(name);
    seen.add(name);
    const count = (kept.get(name) ?? 0) + 1;
    const youngMs = finishedAt + limits.minAgeMs - now.wall;
    if (state === "exited") kept.set(name, count);
    const isTooMany = (limits.perContainer >= 0 && count > limits.perContainer) || limits.isDiscarded?.(id) === true;
    const isSurplus = state === "exited" && !isNewest && isTooMany;
    if (isSurplus && youngMs <= 0) containers.push(container);
    else occupied.add(sandboxId);
    if (isSurplus && youngMs > 0) afterMs = Math.min(afterMs, youngMs);
  }
  const sandboxIds = observed.sandboxes
    .slice(1)
    .filter(({ id, state }) => state !== "ready" && !occupied.has(id))
    .map(({ id }) => id);
  return { containers, sandboxIds, ...(Number.isFinite(afterMs) ? { afterMs } : {}) };
}
