import type { Resource } from "../../adapters/kubeapi/index.ts";
import type { ObjectMeta } from "../../model/generated/types.ts";
import type { FieldError } from "../status/field-error.ts";
import type { JsonObject } from "../store/index.ts";
import type { NameRule } from "./name-rules.ts";

/** What every object has. */
export interface ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** Who makes a request. */
export interface RequestUser {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Reads other objects in the same moment as a write. */
export interface ObjectReader {
  get<T>(resource: Resource<T>, at: { readonly namespace?: string; readonly name: string }): T | undefined;
  list<T>(resource: Resource<T>, namespace?: string): readonly T[];
}

/** What a strategy may know about the write that it is asked about. */
export interface WriteContext {
  /** Now as RFC 3339, in whole seconds. */
  readonly now: string;
  readonly user: RequestUser;
  readonly read: ObjectReader;
  /** Five characters for generated names. */
  suffix(): string;
  /** Sends a Warning header with the answer. */
  warn(text: string): void;
}

/** A change of other objects that belongs to a write: it happens in the same moment, or not at all. */
export interface SideWrites {
  /** Creates an object if there is none of that name. */
  ensure<T extends ApiObject>(resource: Resource<T>, object: T): void;
}

/** An update through a path of its own, such as `status`. */
export interface UpdateSubresource<T> {
  /** What is stored: the parts of the new object that this path may change, and the old one. */
  prepare(object: T, old: T, context: WriteContext): T;
  validate?(object: T, old: T): readonly FieldError[];
}

/** A column of `kubectl get`; those of a priority above 0 are shown by `-o wide`. */
export interface TableColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean";
  readonly format?: "name";
  readonly priority?: number;
  readonly description?: string;
}

/** A cell of a table. */
export type Cell = string | number | boolean | null;

/** How objects of a kind are shown; the first column is their name. */
export interface TableLayout<T> {
  readonly columns: readonly TableColumn[];
  cells(object: T, now: number): readonly Cell[];
}

export type Verb = "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";

/** Everything that sets a kind apart from the others. What is missing is as for most of them. */
export interface KindDefinition<T> {
  readonly resource: Resource<T>;
  /** Defaults to the kind in small letters. */
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Name of the type in the schema; defaults to the kind. */
  readonly type?: string;
  /** The resource whose objects these are, in another form. */
  readonly storedAs?: {
    readonly resource: Resource<unknown>;
    toStored(object: T): JsonObject;
    fromStored(object: JsonObject): T;
  };
  /** Encrypted on disk. */
  readonly isSecret?: boolean;
  /** Defaults to a DNS name. */
  readonly nameRule?: NameRule;
  /** A new object keeps the status that its creator gives it. */
  readonly createsWithStatus?: boolean;
  /** Changes of the spec count in `metadata.generation`. */
  readonly hasGeneration?: boolean;
  /** True for a change that counts in it too; those by subresources count only if they change the spec. */
  countsChange?(object: T, old: T): boolean;
  /** Sent as a warning with each answer. */
  readonly deprecation?: string;
  /** A PUT creates what is missing. */
  readonly createsOnUpdate?: boolean;
  /** A PUT must name the version that it replaces. */
  readonly needsVersion?: boolean;
  /** A deletion answers with the object instead of a status. */
  readonly returnsDeleted?: boolean;
  /** What becomes of dependents if a deletion does not say. `Unsupported`: it never has any. */
  readonly propagation?: "Background" | "Orphan" | "Unsupported";
  /** Objects are removed this long after their last write, in milliseconds. */
  readonly ttlMs?: number;

  /** The object with the defaults of the API. Pure; applying it twice changes nothing. */
  defaults?(object: T): T;
  /** Sets what the server sets and drops what clients may not set. Runs before validation. */
  prepareCreate?(object: T, context: WriteContext): T;
  prepareUpdate?(object: T, old: T, context: WriteContext): T;
  /** All that is wrong with an object, beside its metadata. */
  validate?(object: T): readonly FieldError[];
  /** All that is wrong with a change, beside what is wrong with the object. */
  validateUpdate?(object: T, old: T): readonly FieldError[];
  /** Admission: changes or refuses an object by what else there is. Throws `StatusError`. */
  admit?(object: T, context: WriteContext): T;
  /** Refuses or warns about a deletion. Throws `StatusError`. */
  admitDelete?(object: T, context: WriteContext): void;
  /** True for an object whose namespace is made if it is missing. */
  makesNamespace?(object: T): boolean;
  /** Writes that come with a new object. */
  afterCreate?(object: T, writes: SideWrites): void;
  /** Seconds of grace for a deletion; without this, objects have none. */
  graceSeconds?(object: T, requested: number | undefined): number;
  /** What is stored of an object that is marked as deleted. */
  prepareDelete?(object: T): T;
  /** True while something beside its finalizers keeps an object that is marked as deleted. */
  isHeld?(object: T): boolean;
  /** Fields that a field selector may name, beside name and namespace. */
  selectableFields?(object: T): Readonly<Record<string, string>>;
  /** Missing for kinds without a status of their own. */
  readonly status?: Partial<UpdateSubresource<T>>;
  readonly updates?: Readonly<Record<string, UpdateSubresource<T>>>;
  /** Number of wanted and of running copies, for `scale`. */
  readonly scale?: ScaleFields<T>;
  readonly table: TableLayout<T>;
}

/** Where a kind keeps what its `scale` shows. */
export interface ScaleFields<T> {
  read(object: T): { readonly wanted: number; readonly current: number; readonly selector: string };
  withReplicas(object: T, replicas: number): T;
}

/** A kind as the server sees it: the type of its objects is known only to its definition. */
export interface Kind extends KindDefinition<ApiObject> {
  /** `pods`, `deployments.apps`: the collection that its objects are in. */
  readonly collection: string;
  readonly schemaType: string;
  readonly apiVersion: string;
  readonly verbs: readonly Verb[];
}

const ALL_VERBS: readonly Verb[] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

export function defineKind<T extends ApiObject>(definition: KindDefinition<T>): Kind {
  const { resource } = definition;
  const stored: Resource<unknown> = definition.storedAs?.resource ?? resource;
  return {
    // Objects reach a strategy only by the path of its own kind, and after decoding by its own schema.
    ...(definition as unknown as KindDefinition<ApiObject>),
    collection: collectionOf(stored),
    schemaType: definition.type ?? resource.kind,
    apiVersion: resource.group === "" ? resource.version : `${resource.group}/${resource.version}`,
    verbs: ALL_VERBS,
  };
}

/** `pods`, `deployments.apps`. */
export function collectionOf({ group, plural }: { readonly group: string; readonly plural: string }): string {
  return group === "" ? plural : `${plural}.${group}`;
}
