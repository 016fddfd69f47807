import type { ManagedFieldsEntry } from "../../model/generated/types.ts";
import { FieldSet } from "./field-set.ts";

/** What one manager owns through one kind of operation. */
export interface Ownership {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly set: FieldSet;
}

/** Names an owner; appliers are the same in all versions of the API. */
export function ownerKey(owner: Pick<Ownership, "manager" | "operation" | "apiVersion" | "subresource">): string {
  const { manager, operation, apiVersion, subresource } = owner;
  return JSON.stringify([manager, operation, operation === "Apply" ? "" : apiVersion, subresource]);
}

/** By `ownerKey`. */
export type Owners = ReadonlyMap<string, Ownership>;

/** Reads `metadata.managedFields`; undefined if an entry is not one. */
export function decodeOwners(entries: readonly ManagedFieldsEntry[]): Owners | undefined {
  const owners = new Map<string, Ownership>();
  for (const entry of entries) {
    const { manager = "", operation, apiVersion = "", subresource = "", time, fieldsType, fieldsV1 } = entry;
    if (operation !== "Apply" && operation !== "Update") return undefined;
    if (fieldsType !== "FieldsV1" || apiVersion === "") return undefined;
    const owner: Ownership = { manager, operation, apiVersion, subresource, time, set: FieldSet.decode(fieldsV1) };
    owners.set(ownerKey(owner), owner);
  }
  return owners;
}

/** The form of `metadata.managedFields`, in the order of Kubernetes: appliers first, then by time and name. */
export function encodeOwners(owners: Owners): readonly ManagedFieldsEntry[] {
  return [...owners.values()].sort(byOperationAndTime).map(({ set, subresource, time, ...owner }) => ({
    ...owner,
    ...(time !== undefined && { time }),
    fieldsType: "FieldsV1",
    fieldsV1: set.encode(),
    ...(subresource !== "" && { subresource }),
  }));
}

function byOperationAndTime(a: Ownership, b: Ownership): number {
  if (a.operation !== b.operation) return a.operation < b.operation ? -1 : 1;
  const [left = "", right = ""] = [a.time, b.time];
  if (left !== right) return left < right ? -1 : 1;
  return a.manager < b.manager ? -1 : a.manager > b.manager ? 1 : 0;
}

const MOST_UPDATERS = 10;
const OLD_UPDATES = "ancient-changes";

/** Merges the oldest updaters into one until there are few enough: an object must not grow with each new client. */
export function withFewUpdaters(owners: Owners): Owners {
  const updaters = [...owners.values()].filter(({ operation }) => operation === "Update");
  if (updaters.length <= MOST_UPDATERS) return owners;
  const merged = new Map(owners);
  const oldest = updaters.sort(byOperationAndTime).slice(0, updaters.length - MOST_UPDATERS + 1);
  for (const owner of oldest) {
    merged.delete(ownerKey(owner));
    const bucket = { ...owner, manager: OLD_UPDATES, subresource: "" };
    const known = merged.get(ownerKey(bucket));
    merged.set(ownerKey(bucket), { ...bucket, set: owner.set.union(known?.set ?? FieldSet.empty) });
  }
  return merged;
}
