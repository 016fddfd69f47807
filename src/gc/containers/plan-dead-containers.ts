import type { Instant } from "../../lib/clock.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";

/** `maximum-dead-containers` and `minimum-container-ttl-duration`. */
export interface DeadContainerLimits {
  /** Terminated containers in all; negative means no limit. */
  readonly total: number;
  readonly minAgeMs: number;
}

/** A pod with what the runtime has of it. */
export interface DeadContainersPod extends Pick<ObservedPod, "uid" | "containers"> {
  /** Its status is kept elsewhere and final, so that it needs none of its containers any more. */
  readonly isDispensable: boolean;
}

interface Unit {
  readonly uid: string;
  /** Terminated instances, newest first. */
  readonly dead: ObservedContainer[];
  /** Those of them that may go. */
  readonly removable: ReadonlySet<ObservedContainer>;
}

/**
 * Returns the terminated containers that are too many in all, by the UID of their pod. As in Kubernetes each container
 * of a pod keeps its share, at least one, and then the oldest of all go; but the newest instance of a container stays
 * as long as its pod's status is derived from it. Pure.
 */
export function planDeadContainers(
  pods: readonly DeadContainersPod[],
  limits: DeadContainerLimits,
  now: Instant,
): ReadonlyMap<string, ReadonlySet<string>> {
  const chosen = new Map<string, Set<string>>();
  if (limits.total < 0) return chosen;
  const units = pods.flatMap((pod) => unitsOf(pod, limits, now));
  let surplus = units.reduce((sum, { dead }) => sum + dead.length, 0) - limits.total;
  if (surplus <= 0) return chosen;
  const take = (uid: string, { id }: ObservedContainer): void => {
    const known = chosen.get(uid);
    if (known === undefined) chosen.set(uid, new Set([id]));
    else known.add(id);
    surplus--;
  };
  const share = Math.max(1, Math.floor(limits.total / units.length));
  const left: { uid: string; container: ObservedContainer }[] = [];
  for (const { uid, dead, removable } of units) {
    dead.forEach((container, index) => {
      if (!removable.has(container)) return;
      if (index >= share) take(uid, container);
      else left.push({ uid, container });
    });
  }
  left.sort((a, b) => a.container.createdAt - b.container.createdAt);
  for (const { uid, container } of left) if (surplus > 0) take(uid, container);
  return chosen;
}

function unitsOf(
  { uid, containers, isDispensable }: DeadContainersPod,
  limits: DeadContainerLimits,
  now: Instant,
): Unit[] {
  const byName = new Map<string, ObservedContainer[]>();
  for (const container of containers) {
    const known = byName.get(container.name);
    if (known === undefined) byName.set(container.name, [container]);
    else known.push(container);
  }
  return [...byName.values()].flatMap((instances) => {
    const dead = instances.filter(({ state }) => state === "exited");
    const isOld = ({ finishedAt }: ObservedContainer): boolean => finishedAt + limits.minAgeMs <= now.wall;
    const removable = dead.filter((one) => isOld(one) && (isDispensable || one !== instances[0]));
    return dead.length === 0 ? [] : [{ uid, dead, removable: new Set(removable) }];
  });
}
