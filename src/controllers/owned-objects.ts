import { ApiError, apiVersionOf, type KubeApi, type KubeObject, type Resource } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { LabelSelector, OwnerReference } from "../model/generated/types.ts";
import { labelMatcher, matchesLabels } from "../model/label-selector.ts";
import type { Informer } from "./informers.ts";
import { controllerOf, keyOf } from "./object-index.ts";

/** An object that manages others. */
export interface Owner<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  readonly object: T;
}

/** The reference that makes an object the controller of another. */
export function controllerReference({ resource, object }: Owner): OwnerReference {
  const { name = "", uid = "" } = object.metadata;
  const { kind } = resource;
  return { apiVersion: apiVersionOf(resource), kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** Objects that an owner manages. */
export function managedBy<T extends KubeObject>(informer: Informer<T>, { metadata }: KubeObject): readonly T[] {
  return informer.ownedBy(metadata.uid ?? "").filter((object) => controllerOf(object)?.uid === metadata.uid);
}

export interface ClaimDeps<T extends KubeObject> {
  readonly api: KubeApi;
  readonly resource: Resource<T>;
  readonly informer: Informer<T>;
}

export interface Claim<T> {
  readonly owner: Owner;
  readonly selector: LabelSelector | undefined;
  /** False for an object that is none of the owner's, whatever its labels; all may be without this. */
  isMember?(object: T): boolean;
  /** Finalizers that an object gets with its adoption. */
  readonly finalizers?: readonly string[];
}

/**
 * Adopts objects that nobody manages and that the selector matches, and releases those of the owner that it no longer
 * matches. Resolves with what the owner manages then. An owner that is being deleted adopts nothing.
 */
export async function claimObjects<T extends KubeObject>(
  deps: ClaimDeps<T>,
  { owner, selector, isMember = () => true, finalizers }: Claim<T>,
  options: Abortable,
): Promise<readonly T[]> {
  const { informer } = deps;
  const isSelected = labelMatcher(selector);
  const belongs = (object: T): boolean => isSelected(object.metadata.labels) && isMember(object);
  const { namespace = "", deletionTimestamp } = owner.object.metadata;
  const claimed: T[] = [];
  for (const object of managedBy(informer, owner.object)) {
    if (belongs(object)) claimed.push(object);
    else if (deletionTimestamp === undefined) await release(deps, { owner, object }, options);
  }
  if (deletionTimestamp !== undefined) return claimed;
  for (const object of informer.withoutController(namespace)) {
    if (informer.isDeleting(object) || !belongs(object)) continue;
    const adopted = await adopt(deps, { owner, object, ...(finalizers && { finalizers }) }, options);
    if (adopted !== undefined) claimed.push(adopted);
  }
  return claimed;
}

interface Pair<T> {
  readonly owner: Owner;
  readonly object: T;
}

/** Undefined if the object is gone, or another adopted it first. */
async function adopt<T extends KubeObject>(
  { api, resource, informer }: ClaimDeps<T>,
  { owner, object, finalizers }: Pair<T> & Pick<Claim<T>, "finalizers">,
  options: Abortable,
): Promise<T | undefined> {
  const { namespace = "", name = "", uid } = owner.object.metadata;
  // The informer may not know yet that the owner is being deleted: its objects would be adopted and deleted with it.
  const fresh = await api.get(owner.resource, { namespace, name }, options);
  if (fresh.metadata.uid !== uid || fresh.metadata.deletionTimestamp !== undefined) return undefined;
  const ownerReferences = [controllerReference(owner)];
  const body = { metadata: { ownerReferences, uid: object.metadata.uid, ...(finalizers && { finalizers }) } };
  return patchOwners({ api, resource, informer }, { object, body }, options);
}

async function release<T extends KubeObject>(
  deps: ClaimDeps<T>,
  { owner, object }: Pair<T>,
  options: Abortable,
): Promise<void> {
  const ownerReferences = [{ $patch: "delete", uid: owner.object.metadata.uid }];
  await patchOwners(deps, { object, body: { metadata: { ownerReferences, uid: object.metadata.uid } } }, options);
}

async function patchOwners<T extends KubeObject>(
  { api, resource, informer }: ClaimDeps<T>,
  { object, body }: { readonly object: T; readonly body: unknown },
  options: Abortable,
): Promise<T | undefined> {
  const { namespace = "", name = "" } = object.metadata;
  try {
    const patched = await api.patch<T>(resource, { namespace, name, type: "strategic", body }, options);
    informer.wrote(patched);
    return patched;
  } catch (error) {
    // Gone, or replaced under its name, or adopted by another.
    if (error instanceof ApiError && ["NotFound", "Invalid", "Conflict"].includes(error.code)) return undefined;
    throw error;
  }
}

export interface OwnerWakes<T extends KubeObject, O extends KubeObject> {
  readonly objects: Informer<T>;
  readonly owners: Informer<O>;
  /** The kind of the owners. */
  readonly kind: string;
  selectorOf(owner: O): LabelSelector | undefined;
  wake(key: string): void;
}

/** Wakes owners that change, the controller of each object that does, and those that may adopt one that nobody manages. */
export function wakeOwners<T extends KubeObject, O extends KubeObject>(
  { objects, owners, kind, selectorOf, wake }: OwnerWakes<T, O>,
  options: Abortable,
): void {
  owners.onChange(({ kind: change, object }) => change !== "deleted" && wake(keyOf(object)), options);
  const wakeController = (object: T): void => {
    const reference = controllerOf(object);
    if (reference?.kind === kind) wake(`${object.metadata.namespace ?? ""}/${reference.name}`);
  };
  objects.onChange((change) => {
    const { object } = change;
    if (change.kind === "updated" && controllerOf(change.previous)?.uid !== controllerOf(object)?.uid) {
      wakeController(change.previous);
    }
    wakeController(object);
    if (change.kind === "deleted" || controllerOf(object) !== undefined) return;
    if (change.kind === "updated" && !mayBeAdoptedNow(change)) return;
    for (const owner of owners.list(object.metadata.namespace ?? "")) {
      if (matchesLabels(selectorOf(owner), object.metadata.labels)) wake(keyOf(owner));
    }
  }, options);
}

/** Whether labels or owners of an object changed. */
function mayBeAdoptedNow({
  object,
  previous,
}: {
  readonly object: KubeObject;
  readonly previous: KubeObject;
}): boolean {
  const relevant = ({ metadata }: KubeObject): string => JSON.stringify([metadata.labels, metadata.ownerReferences]);
  return relevant(object) !== relevant(previous);
}
