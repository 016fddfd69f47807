import { ownValue } from "../../lib/own-value.ts";
import type { DaemonSet, DaemonSetStatus, Node, Pod } from "../../model/generated/types.ts";
import { isAvailable, isReady } from "../pod-state.ts";
import { scaledValue } from "../scaled-value.ts";
import { fitOf, HASH_LABEL, nodeOf } from "./daemon-pod.ts";

export interface DaemonFacts {
  readonly set: DaemonSet;
  readonly nodes: readonly Node[];
  /** The pods of the set on all nodes. */
  readonly pods: readonly Pod[];
  /** The hash of the template as it is now. */
  readonly hash: string;
  isDeleting(pod: Pod): boolean;
  readonly nowMs: number;
}

/** What a set is to do now. */
export interface DaemonPlan {
  /** Names of nodes that get a pod. */
  readonly creations: readonly string[];
  readonly deletions: readonly Pod[];
  /** Pods that have ended, and go for that reason. */
  readonly ended: readonly Pod[];
}

interface NodePods {
  readonly name: string;
  readonly runs: boolean;
  readonly stays: boolean;
  /** All pods there, also those that are being deleted. */
  readonly all: readonly Pod[];
  /** Those that run or will, the oldest first. */
  readonly living: readonly Pod[];
  readonly newPod: Pod | undefined;
  readonly oldPod: Pod | undefined;
}

/** One pod a node where it belongs, of the newest template as the update strategy allows. Pure. */
export function planDaemonSet(facts: DaemonFacts): DaemonPlan {
  const nodes = nodesOf(facts);
  const known = new Set(nodes.map(({ name }) => name));
  const lost = facts.pods.filter((pod) => !known.has(nodeOf(pod)) && !facts.isDeleting(pod));
  const kept = nodes.map((node) => planNode(node, facts));
  const manage = {
    creations: kept.flatMap(({ creations }) => creations),
    deletions: [...lost, ...kept.flatMap(({ deletions }) => deletions)],
    ended: kept.flatMap(({ ended }) => ended),
  };
  const isChanging = manage.creations.length + manage.deletions.length + manage.ended.length > 0;
  if (isChanging || facts.set.spec.updateStrategy?.type === "OnDelete") return manage;
  return planUpdate(nodes, facts);
}

function nodesOf({ set, nodes, pods, hash, isDeleting }: DaemonFacts): readonly NodePods[] {
  return nodes.map((node) => {
    const name = node.metadata.name ?? "";
    const all = pods.filter((pod) => nodeOf(pod) === name);
    const living = all.filter((pod) => !isDeleting(pod) && !hasEnded(pod)).sort(scheduledThenOldest);
    const isNew = (pod: Pod): boolean => ownValue(pod.metadata.labels, HASH_LABEL) === hash;
    const oldPod = living.find((pod) => !isNew(pod));
    return { name, ...fitOf(set, node), all, living, newPod: living.find(isNew), oldPod };
  });
}

function planNode({ name, runs, stays, all, living, newPod, oldPod }: NodePods, facts: DaemonFacts): DaemonPlan {
  const none: DaemonPlan = { creations: [], deletions: [], ended: [] };
  if (!stays && !runs) return { ...none, deletions: all.filter((pod) => !facts.isDeleting(pod)) };
  const ended = all.filter((pod) => !living.includes(pod) && !facts.isDeleting(pod));
  const allowsSurge = limits(facts).maxSurge > 0;
  if (living.length === 0) {
    // Without surge, a pod that is being deleted makes room first.
    const isFree = all.length === 0 || (allowsSurge && ended.length === 0);
    return { ...none, creations: runs && isFree ? [name] : [], ended };
  }
  if (!allowsSurge) return { ...none, deletions: living.slice(1), ended };
  const surplus = living.filter((pod) => pod !== newPod && pod !== oldPod);
  const isReplaced = newPod !== undefined && oldPod !== undefined && (!isReady(oldPod) || isUsable(newPod, facts));
  return { ...none, deletions: [...surplus, ...(isReplaced ? [oldPod] : [])], ended };
}

function planUpdate(nodes: readonly NodePods[], facts: DaemonFacts): DaemonPlan {
  const { maxSurge, maxUnavailable } = limits(facts);
  const involved = nodes.filter(({ all }) => all.length > 0);
  const outdated = involved.filter(({ newPod, oldPod }) => newPod === undefined && oldPod !== undefined);
  const isUp = ({ oldPod }: NodePods): boolean => oldPod !== undefined && isUsable(oldPod, facts);
  const unusable = outdated.filter((node) => !isUp(node));
  const usable = outdated.filter(isUp);
  if (maxSurge > 0) {
    const surging = involved.filter(({ newPod, oldPod }) => newPod !== undefined && oldPod !== undefined).length;
    const creations = [...unusable, ...usable.slice(0, Math.max(0, maxSurge - surging))].filter(({ runs }) => runs);
    return { creations: creations.map(({ name }) => name), deletions: [], ended: [] };
  }
  const down = involved.filter(
    ({ newPod, oldPod }) => oldPod === undefined && (newPod === undefined || !isUsable(newPod, facts)),
  );
  const room = Math.max(0, maxUnavailable - unusable.length - down.length);
  const chosen = [...unusable, ...usable.slice(0, room)];
  return { creations: [], deletions: chosen.flatMap(({ oldPod }) => (oldPod ? [oldPod] : [])), ended: [] };
}

function limits({ set, nodes }: DaemonFacts): { readonly maxSurge: number; readonly maxUnavailable: number } {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {};
  if (type === "OnDelete") return { maxSurge: 0, maxUnavailable: 1 };
  const desired = nodes.filter((node) => fitOf(set, node).runs).length;
  const maxSurge = scaledValue(rollingUpdate?.maxSurge ?? 0, desired, "up");
  const maxUnavailable = scaledValue(rollingUpdate?.maxUnavailable ?? 1, desired, "up");
  return { maxSurge, maxUnavailable: maxSurge === 0 && maxUnavailable === 0 ? 1 : maxUnavailable };
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === "Failed" || status?.phase === "Succeeded";
}

function isUsable(pod: Pod, { set, nowMs }: DaemonFacts): boolean {
  return isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs);
}

function scheduledThenOldest(a: Pod, b: Pod): number {
  const scheduled = Number(Boolean(b.spec.nodeName)) - Number(Boolean(a.spec.nodeName));
  const [atA, atB] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  return scheduled || (atA < atB ? -1 : atA > atB ? 1 : (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1);
}

/** The status of a set. Pure. */
export function daemonSetStatus(facts: DaemonFacts, collisionCount: number): DaemonSetStatus {
  const { set, hash, isDeleting } = facts;
  const nodes = nodesOf({ ...facts, pods: facts.pods.filter((pod) => !isDeleting(pod) || !hasEnded(pod)) });
  const wanted = nodes.filter(({ runs }) => runs);
  // The oldest pod of a node speaks for it: while an update has two there, the new one does not count yet.
  const speakers = wanted.flatMap(({ all }) => [...all].sort(scheduledThenOldest).slice(0, 1));
  const count = (is: (pod: Pod) => boolean): number => speakers.filter(is).length;
  const available = count((pod) => isUsable(pod, facts));
  const { conditions } = set.status ?? {};
  return {
    desiredNumberScheduled: wanted.length,
    currentNumberScheduled: speakers.length,
    numberMisscheduled: nodes.filter(({ runs, all }) => !runs && all.length > 0).length,
    numberReady: count(isReady),
    updatedNumberScheduled: count((pod) => ownValue(pod.metadata.labels, HASH_LABEL) === hash),
    numberAvailable: available,
    numberUnavailable: wanted.length - available,
    observedGeneration: set.metadata.generation ?? 0,
    ...(collisionCount > 0 && { collisionCount }),
    ...(conditions && { conditions }),
  };
}
