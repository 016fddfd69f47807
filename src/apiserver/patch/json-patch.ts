import { isDeepStrictEqual } from "node:util";
import { countValues } from "../../lib/count-values.ts";
import { MOST_VALUES } from "../schema/json-depth.ts";
import { isTree } from "../schema/type-schema.ts";
import { badRequest, StatusError, tooLargeBody } from "../status/status-error.ts";
import { setOwn } from "./merge-patch.ts";

const MOST_OPERATIONS = 10_000;
/** What all copies of a patch may add, beside `MOST_VALUES` fields and elements: each can double the object. */
const MOST_COPIED_BYTES = 3 * 1024 * 1024;

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string | undefined;
  readonly value?: unknown;
}

/** Applies a JSON patch (RFC 6902). A new value; throws `StatusError` if it is not a patch or does not apply. */
export function jsonPatch(document: unknown, patch: unknown): unknown {
  const operations = readOperations(patch);
  // Once for all operations, which change it in place.
  const root = { value: structuredClone(document), copied: 0, values: 0 };
  for (const operation of operations) apply(root, operation);
  return root.value;
}

function readOperations(patch: unknown): readonly Operation[] {
  if (!Array.isArray(patch)) {
    throw badRequest(
      "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
  }
  if (patch.length > MOST_OPERATIONS) throw tooLargeBody(MOST_OPERATIONS);
  return patch.map((entry: unknown) => {
    if (!isTree(entry)) {
      const message = `json: cannot unmarshal ${jsonType(entry)} into Go value of type handlers.jsonPatchOp`;
      throw badRequest(`error decoding patch: ${message}`);
    }
    const { op, path, from, value } = entry;
    if (typeof op !== "string") throw doesNotApply("Unexpected kind: unknown");
    if (typeof path !== "string") throw doesNotApply(`${op} operation failed to decode path: missing value`);
    if (from !== undefined && typeof from !== "string") {
      throw doesNotApply(`${op} operation failed to decode from: missing value`);
    }
    return { op, path, from, ...("value" in entry && { value }) };
  });
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : value === null ? "null" : typeof value;
}

interface Root {
  value: unknown;
  /** Bytes that were copied inside the object. */
  copied: number;
  /** Fields and elements that were copied. */
  values: number;
}

function apply(root: Root, operation: Operation): void {
  const { op, path, from = "", value } = operation;
  switch (op) {
    case "add":
      return add(root, operation, structuredClone(value));
    case "remove":
      return remove(root, operation);
    case "replace":
      if (path === "") root.value = structuredClone(value);
      else replace(root, operation, structuredClone(value));
      return;
    case "move": {
      // RFC 6902: a value cannot be moved into itself.
      if (path.startsWith(`${from}/`))
        throw doesNotApply(`move operation does not apply: ${path} is inside of ${from}`);
      const moved = get(root, { op, path: from });
      remove(root, { op, path: from });
      return add(root, operation, moved);
    }
    case "copy": {
      const copied = get(root, { op, path: from });
      root.values += countValues(copied, MOST_VALUES);
      if (root.values > MOST_VALUES) throw tooLargeBody(MOST_VALUES);
      root.copied += JSON.stringify(copied).length;
      if (root.copied > MOST_COPIED_BYTES) throw tooLargeBody(MOST_COPIED_BYTES);
      return add(root, operation, structuredClone(copied));
    }
    case "test":
      if (isDeepStrictEqual(has(root, operation) ? get(root, operation) : null, value ?? null)) return;
      throw doesNotApply(`testing value ${path} failed: test failed`);
    default:
      throw doesNotApply(`Unexpected kind: ${op}`);
  }
}

function segmentsOf({ op, path }: Operation): readonly string[] {
  if (path !== "" && !path.startsWith("/")) throw missing(op, path);
  return path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The object or list that holds the last segment of a path, and that segment. */
function parentOf(root: Root, operation: Operation): { readonly parent: unknown; readonly key: string } {
  const segments = segmentsOf(operation);
  let parent = root.value;
  for (const segment of segments.slice(0, -1)) {
    parent = child(parent, segment);
    if (parent === undefined) throw missing(operation.op, operation.path);
  }
  return { parent, key: segments.at(-1) ?? "" };
}

function child(parent: unknown, key: string): unknown {
  if (Array.isArray(parent)) return parent[indexOf(key, parent.length)] as unknown;
  return isTree(parent) && Object.hasOwn(parent, key) ? parent[key] : undefined;
}

/** The index that a key stands for; negative ones count from the end, as in Kubernetes. NaN if it is none. */
function indexOf(key: string, length: number): number {
  if (!/^[+-]?\d+$/.test(key)) return Number.NaN;
  return Number(key) < 0 ? Number(key) + length : Number(key);
}

function has(root: Root, operation: Operation): boolean {
  if (operation.path === "") return true;
  const { parent, key } = parentOf(root, operation);
  return child(parent, key) !== undefined;
}

function get(root: Root, operation: Operation): unknown {
  if (operation.path === "") return root.value;
  const { parent, key } = parentOf(root, operation);
  const found = child(parent, key);
  if (found === undefined) throw missing(operation.op, operation.path);
  return found;
}

function add(root: Root, operation: Operation, value: unknown): void {
  if (operation.path === "") {
    root.value = value;
    return;
  }
  const { parent, key } = parentOf(root, operation);
  if (Array.isArray(parent)) {
    const index = key === "-" ? parent.length : indexOf(key, parent.length + 1);
    if (!(index >= 0 && index <= parent.length)) {
      throw doesNotApply(
        `add operation does not apply: Unable to access invalid index: ${key}: invalid index referenced`,
      );
    }
    parent.splice(index, 0, value);
  } else if (isTree(parent)) setOwn(parent, key, value);
  else throw missing("add", operation.path);
}

/** A field that is missing is set, as in Kubernetes; an element of a list must be there. */
function replace(root: Root, operation: Operation, value: unknown): void {
  const { parent, key } = parentOf(root, operation);
  if (isTree(parent)) return setOwn(parent, key, value);
  get(root, operation);
  if (Array.isArray(parent)) parent[indexOf(key, parent.length)] = value;
}

function remove(root: Root, operation: Operation): void {
  get(root, operation);
  const { parent, key } = parentOf(root, operation);
  if (Array.isArray(parent)) parent.splice(indexOf(key, parent.length), 1);
  else if (isTree(parent)) delete parent[key];
}

function missing(op: string, path: string): StatusError {
  return doesNotApply(`${op} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`);
}

/** The server understood the patch, but it does not fit the object. */
function doesNotApply(message: string): StatusError {
  const text = "the server rejected our request due to an error in our request";
  return new StatusError({ code: 422, reason: "Invalid", message: text, details: {} }, { cause: new Error(message) });
}
