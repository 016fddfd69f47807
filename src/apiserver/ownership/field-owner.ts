import { isDeepStrictEqual } from "node:util";
import type { ManagedFieldsEntry } from "../../model/generated/types.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { isTree } from "../schema/type-schema.ts";
import { badRequest, StatusError } from "../status/status-error.ts";
import type { JsonObject } from "../store/index.ts";
import { FieldSet, subtrees } from "./field-set.ts";
import {
  decodeOwners,
  encodeOwners,
  type Owners,
  type Ownership,
  ownerKey,
  withFewUpdaters,
} from "./managed-fields.ts";
import { type Comparison, compareTrees, fieldSetOf, mergeTrees, removeItems, withNamedFields } from "./walk.ts";

/** A write, as far as ownership is concerned. */
export interface OwnedWrite {
  /** The type of the object in the schema. */
  readonly type: string;
  readonly apiVersion: string;
  readonly manager: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  /** Now as RFC 3339; undefined if the time is not recorded. */
  readonly now: string | undefined;
}

/** What nobody owns: the server's own part of the metadata. */
const NOT_OWNED = subtrees(
  ["apiVersion"],
  ["kind"],
  ...[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
  ].map((name) => ["metadata", name]),
);

/** Fields that a write through this path does not change, whatever it says. */
function resetBy(subresource: string): FieldSet {
  if (subresource === "") return subtrees(["status"]);
  return subresource === "status" ? subtrees(["spec"]) : FieldSet.empty;
}

/**
 * Records who owns what after a create, update or patch: the writer owns what it changed, and nobody else does any more.
 * Returns the new object with its `managedFields`.
 */
export function recordUpdate(live: JsonObject, next: JsonObject, write: OwnedWrite): JsonObject {
  const owners = liveOrNewOwners(live, next, write.subresource !== "");
  // Ownership begins with a creation or an apply, and never in between.
  if (owners.size === 0 && isStored(live)) return withEntries(next, []);
  const difference = relevant(compareTrees(write.type, withoutOwners(live), withoutOwners(next)), write);
  const changed = difference.modified.union(difference.added).difference(NOT_OWNED);
  const after = new Map<string, Ownership>();
  for (const [key, owner] of owners) {
    const set = owner.set.difference(difference.modified.union(difference.added)).difference(difference.removed);
    if (!set.isEmpty) after.set(key, { ...owner, set });
  }
  if (!changed.isEmpty) {
    const { manager, apiVersion, subresource, now } = write;
    const self = { manager, operation: "Update", apiVersion, subresource, time: now } as const;
    const key = ownerKey(self);
    after.set(key, { ...self, set: changed.union(after.get(key)?.set ?? FieldSet.empty) });
  }
  return withEntries(next, encodeOwners(withFewUpdaters(after)));
}

/**
 * Server-side apply: merges what the applier says into the live object, removes what it no longer says, and records what
 * it owns. Throws `StatusError` (Conflict) if that changes what others own, unless `isForced`.
 */
export function applyConfiguration(
  live: JsonObject,
  config: JsonObject,
  write: OwnedWrite & { readonly isForced: boolean },
): JsonObject {
  if (ownersField(config) !== undefined) throw badRequest("metadata.managedFields must be nil");
  const { type, manager, apiVersion, subresource, now, isForced } = write;
  const known = decodeOwners(ownersField(live) ?? []);
  if (known === undefined) throw badRequest("metadata.managedFields of the object cannot be read");
  const owners = known.size === 0 && isStored(live) ? beforeApply(live, write) : known;
  const self = { manager, operation: "Apply", apiVersion, subresource, time: now } as const;
  const key = ownerKey(self);
  const last = owners.get(key);
  const before = withoutOwners(live);
  const set = fieldSetOf(type, config).difference(NOT_OWNED).without(resetBy(subresource));
  const applied = new Map(owners).set(key, { ...self, set });
  const merged = pruned(type, mergeTrees(type, before, config), { last: last?.set ?? FieldSet.empty, owners: applied });
  const after = settle({ before, merged, owners: applied, key }, { ...write, isForced });
  const isSame = isDeepStrictEqual(before, merged);
  const mine = after.get(key);
  // An apply that changes nothing has no time of its own, as in Kubernetes.
  if (isSame && mine !== undefined) after.set(key, { ...mine, time: last?.time });
  return withEntries(merged, encodeOwners(after));
}

interface Settlement {
  readonly before: JsonObject;
  readonly merged: JsonObject;
  readonly owners: Owners;
  /** The applier. */
  readonly key: string;
}

/** Takes from the other owners what the applier changed; throws if they own it and it is not forced. */
function settle(
  { before, merged, owners, key }: Settlement,
  write: OwnedWrite & { readonly isForced: boolean },
): Map<string, Ownership> {
  const difference = relevant(compareTrees(write.type, before, merged), write);
  const changed = difference.modified.union(difference.added);
  const conflicts: { readonly owner: Ownership; readonly set: FieldSet }[] = [];
  const after = new Map<string, Ownership>();
  for (const [name, owner] of owners) {
    if (name === key) {
      if (!owner.set.isEmpty) after.set(name, owner);
      continue;
    }
    const set = owner.set.intersection(changed);
    if (!set.isEmpty) conflicts.push({ owner, set });
    const left = owner.set.difference(set).difference(difference.removed);
    if (!left.isEmpty) after.set(name, { ...owner, set: left });
  }
  if (conflicts.length > 0 && !write.isForced) throw applyConflict(conflicts);
  return after;
}

/** Without what the applier said last time and does not say now, unless somebody else says it. */
function pruned(
  type: string,
  merged: JsonObject,
  { last, owners }: { readonly last: FieldSet; readonly owners: Owners },
): JsonObject {
  if (last.isEmpty) return merged;
  const lastNamed = withNamedFields(type, last);
  const mergedSet = withNamedFields(type, fieldSetOf(type, merged));
  const bare = removeItems(type, merged, lastNamed);
  const managed = [...owners.values()].reduce((all, { set }) => all.union(set), FieldSet.empty);
  const kept = withNamedFields(type, fieldSetOf(type, bare)).union(withNamedFields(type, managed));
  const owned = removeItems(type, merged, mergedSet.difference(kept));
  const ownedSet = withNamedFields(type, fieldSetOf(type, owned));
  return removeItems(type, merged, mergedSet.difference(ownedSet).intersection(lastNamed));
}

function relevant({ added, modified, removed }: Comparison, { subresource }: OwnedWrite): Comparison {
  const reset = resetBy(subresource);
  return { added: added.without(reset), modified: modified.without(reset), removed: removed.without(reset) };
}

/**
 * The owners that a client sent, which may be changed, else those of the live object; none if it sent an empty list, which
 * resets them.
 */
function liveOrNewOwners(live: JsonObject, next: JsonObject, isSubresource: boolean): Owners {
  const sent = ownersField(next);
  const ofLive = (): Owners => decodeOwners(ownersField(live) ?? []) ?? new Map<string, Ownership>();
  if (isSubresource || sent === undefined) return ofLive();
  const [first] = sent;
  if (sent.length === 0 || (sent.length === 1 && Object.keys(first ?? {}).length === 0)) return new Map();
  return decodeOwners(sent) ?? ofLive();
}

function isStored({ metadata }: JsonObject): boolean {
  return isTree(metadata) && typeof metadata.uid === "string";
}

/** What was there before the first apply is owned by a manager of its own, so that the applier does not remove it. */
function beforeApply(live: JsonObject, { type, apiVersion, now }: OwnedWrite): Owners {
  const set = compareTrees(type, decodeTree(type, {}).object, withoutOwners(live))
    .added.difference(NOT_OWNED)
    .without(subtrees(["status"]));
  if (set.isEmpty) return new Map();
  const owner: Ownership = {
    manager: "before-first-apply",
    operation: "Update",
    apiVersion,
    subresource: "",
    time: now,
    set,
  };
  return new Map([[ownerKey(owner), owner]]);
}

function ownersField(object: JsonObject): readonly ManagedFieldsEntry[] | undefined {
  const metadata = object.metadata;
  if (!isTree(metadata) || !Array.isArray(metadata.managedFields)) return undefined;
  // Decoded by the schema, or read with care by decodeOwners.
  return metadata.managedFields as readonly ManagedFieldsEntry[];
}

function withoutOwners(object: JsonObject): JsonObject {
  if (!isTree(object.metadata)) return object;
  const { managedFields: _owners, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function withEntries(object: JsonObject, entries: readonly ManagedFieldsEntry[]): JsonObject {
  const bare = withoutOwners(object);
  if (entries.length === 0 || !isTree(bare.metadata)) return bare;
  return { ...bare, metadata: { ...bare.metadata, managedFields: entries } };
}

function applyConflict(conflicts: readonly { readonly owner: Ownership; readonly set: FieldSet }[]): StatusError {
  const all = conflicts.flatMap(({ owner, set }) => set.paths().map((path) => ({ owner: ownerText(owner), path })));
  const causes = all.map(({ owner, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${owner}`,
    field: path,
  }));
  const [only] = all;
  if (all.length === 1 && only !== undefined) {
    const message = `Apply failed with 1 conflict: conflict with ${only.owner}: ${only.path}`;
    return new StatusError({ code: 409, reason: "Conflict", message, details: { causes } });
  }
  const byOwner = [...new Set(all.map(({ owner }) => owner))].sort().map((owner) => {
    const paths = all.filter((one) => one.owner === owner).map(({ path }) => `- ${path}`);
    return [`conflicts with ${owner}:`, ...paths].join("\n");
  });
  const message = `Apply failed with ${all.length} conflicts: ${byOwner.join("\n")}`;
  return new StatusError({ code: 409, reason: "Conflict", message, details: { causes } });
}

function ownerText({ manager, operation, apiVersion, subresource }: Ownership): string {
  const name = `${JSON.stringify(manager)}${subresource === "" ? "" : ` with subresource "${subresource}"`}`;
  return operation === "Update" ? `${name} using ${apiVersion}` : name;
}
