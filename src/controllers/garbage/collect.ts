import type { OwnerReference } from "../../model/generated/types.ts";
import type { GraphNode } from "./object-graph.ts";

export const ORPHAN = "orphan";
export const FOREGROUND = "foregroundDeletion";

/**
 * How an owner stands. `waiting`: it is deleted in the foreground, and its dependents have to go first. `invalid`: it is
 * namespaced and the dependent is cluster-scoped, so nothing can be known.
 */
export type OwnerState = "solid" | "absent" | "waiting" | "invalid";

/** What is to be done about an object because of its owners. */
export type Collection =
  | { readonly kind: "none" }
  /** Some owners are left: the others are no longer referred to. */
  | { readonly kind: "forget"; readonly uids: readonly string[] }
  | {
      readonly kind: "delete";
      readonly propagation: "Background" | "Foreground" | "Orphan";
      /** The references to waiting owners stop blocking: a circle of owners would wait for itself. */
      readonly unblocks: boolean;
    };

export interface CollectionFacts {
  readonly node: GraphNode;
  readonly owners: readonly { readonly reference: OwnerReference; readonly state: OwnerState }[];
  readonly dependents: readonly GraphNode[];
}

/** Decides about an object by the state of its owners. Pure. */
export function planCollection({ node, owners, dependents }: CollectionFacts): Collection {
  const { finalizers = [], deletionTimestamp } = node.metadata;
  if (owners.length === 0 || owners.some(({ state }) => state === "invalid")) return { kind: "none" };
  if (deletionTimestamp !== undefined && !isDeletingDependents(node)) return { kind: "none" };
  const solid = owners.filter(({ state }) => state === "solid");
  const others = owners.filter(({ state }) => state !== "solid");
  if (solid.length > 0) {
    if (others.length === 0) return { kind: "none" };
    return { kind: "forget", uids: others.map(({ reference }) => reference.uid) };
  }
  const isDeleting = deletionTimestamp !== undefined;
  if (others.some(({ state }) => state === "waiting") && dependents.length > 0) {
    const unblocks = dependents.some(isDeletingDependents);
    return isDeleting && !unblocks ? { kind: "none" } : { kind: "delete", propagation: "Foreground", unblocks };
  }
  if (isDeleting) return { kind: "none" };
  const propagation = finalizers.includes(ORPHAN)
    ? "Orphan"
    : finalizers.includes(FOREGROUND)
      ? "Foreground"
      : "Background";
  return { kind: "delete", propagation, unblocks: false };
}

/** True for an object that is being deleted and waits for its dependents. */
export function isDeletingDependents({ metadata }: GraphNode): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(FOREGROUND) === true;
}

/** True for an object that is being deleted and whose dependents are to stay. */
export function isOrphaning({ metadata }: GraphNode): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(ORPHAN) === true;
}

/** The dependents that an owner's deletion in the foreground waits for. */
export function blockingDependents(dependents: readonly GraphNode[], ownerUid: string): readonly GraphNode[] {
  const blocks = ({ uid, blockOwnerDeletion }: OwnerReference): boolean =>
    uid === ownerUid && blockOwnerDeletion === true;
  return dependents.filter(({ metadata }) => metadata.ownerReferences?.some(blocks) === true);
}
