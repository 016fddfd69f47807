import { randomUUID } from "node:crypto";
import type { Resource } from "../../adapters/kubeapi/index.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  type ApiObject,
  collectionOf,
  type Kind,
  type ObjectReader,
  type RequestUser,
  type WriteContext,
} from "../kinds/kind.ts";
import type { KindTable } from "../kinds/kind-table.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import type { ApiStore, JsonObject, Transaction } from "../store/index.ts";

/** What the operations are built from. */
export interface OperationDeps {
  readonly store: ApiStore;
  readonly kinds: KindTable;
  readonly clock: Clock;
  /** 0 to below 1. */
  readonly random: () => number;
}

/** What becomes of fields that a kind does not have. */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

/** Who writes, and how. */
export interface WriteRequest {
  readonly user: RequestUser;
  /** The name under which written fields are owned. */
  readonly manager: string;
  readonly isDryRun?: boolean;
  readonly validation?: FieldValidation;
  /** Sends a Warning header with the answer. */
  warn?(text: string): void;
}

/** Names an object, a collection or a sub-resource. */
export interface Target {
  readonly kind: Kind;
  /** Empty for cluster-scoped kinds, and for all namespaces. */
  readonly namespace: string;
  readonly name: string;
}

/** RFC 3339 in whole seconds. */
export function timeText(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

const SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH = 5;

/** Random letters for generated names; none of them makes words. */
export function nameSuffix(random: () => number): string {
  return Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_LETTERS[Math.floor(random() * SUFFIX_LETTERS.length)]).join(
    "",
  );
}

export function newUid(): string {
  return randomUUID();
}

/** Reads objects as a transaction sees them. */
export function readerOf(transaction: Transaction): ObjectReader {
  // The collection of a resource has its objects only.
  return {
    get: <T>(resource: Resource<T>, { namespace = "", name }: { readonly namespace?: string; readonly name: string }) =>
      transaction.get(collectionOf(resource), { namespace, name })?.shared() as T | undefined,
    list: <T>(resource: Resource<T>, namespace?: string) =>
      transaction.list(collectionOf(resource), namespace).map((object) => object.shared() as T),
  };
}

/** What a strategy learns about a write. */
export function writeContext(deps: OperationDeps, transaction: Transaction, request: WriteRequest): WriteContext {
  return {
    now: timeText(deps.clock.now().wall),
    user: request.user,
    read: readerOf(transaction),
    suffix: () => nameSuffix(deps.random),
    warn: (text) => request.warn?.(text),
  };
}

/** The object as it is stored: in the form of its schema, kind and metadata first, as servers show it. A copy. */
export function storedForm(kind: Kind, object: ApiObject): JsonObject {
  const { apiVersion: _version, kind: _kind, metadata, ...rest } = decodeTree(kind.schemaType, object).object;
  const whole = { kind: kind.resource.kind, apiVersion: kind.apiVersion, metadata, ...rest };
  // Decoded by the schema of the kind.
  return kind.storedAs === undefined ? whole : kind.storedAs.toStored(whole as unknown as ApiObject);
}

/** A stored object in the form of the kind. */
export function kindForm(kind: Kind, stored: JsonObject): ApiObject {
  // What is in the collection of a kind was decoded by its schema.
  return kind.storedAs === undefined ? (stored as unknown as ApiObject) : kind.storedAs.fromStored(stored);
}
