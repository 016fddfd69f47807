import type { FieldSchema } from "../../model/generated/schema.ts";
import { fieldOf, isTree } from "../schema/type-schema.ts";
import { badRequest, StatusError } from "../status/status-error.ts";
import { setOwn } from "./merge-patch.ts";

type Tree = Record<string, unknown>;

const DIRECTIVE = "$patch";
const RETAIN_KEYS = "$retainKeys";
const DELETE_FROM = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER = "$setElementOrder/";
/** Characters of a message: it repeats what was sent. */
const MOST_MESSAGE = 4096;

/**
 * Applies a strategic merge patch to an object of a type: lists whose elements have a key are merged by it, and a patch
 * may say with directives what to delete, to replace and how to order. A new value; throws `StatusError` if a directive is
 * wrong.
 */
export function strategicPatch(type: string, object: Tree, patch: Tree): Tree {
  const merged = mergeObject(type, object, patch);
  return merged ?? {};
}

/** Undefined if the patch deletes the object. */
function mergeObject(type: string, object: Tree, patch: Tree): Tree | undefined {
  const directive = patch[DIRECTIVE];
  if (directive === "delete") return undefined;
  if (directive === "replace") return withoutDirectives(type, patch);
  if (directive !== undefined && directive !== "merge") {
    throw wrongPatch(`unknown patch type: ${String(directive)} in map: ${goText(patch)}`);
  }
  const merged: Tree = retained(object, patch);
  for (const [key, change] of Object.entries(patch)) {
    if (key.startsWith("$")) {
      if (key.startsWith(DELETE_FROM)) deleteValues(merged, key.slice(DELETE_FROM.length), change);
      continue;
    }
    if (change === null) {
      delete merged[key];
      continue;
    }
    const field = fieldOf(type, key);
    const value = mergeField(field, Object.hasOwn(merged, key) ? merged[key] : undefined, {
      change,
      order: patch[`${ELEMENT_ORDER}${key}`],
    });
    if (value === undefined) delete merged[key];
    else setOwn(merged, key, value);
  }
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(ELEMENT_ORDER)) continue;
    const name = key.slice(ELEMENT_ORDER.length);
    const list = merged[name];
    // Lists that the patch changes are ordered above.
    if (!Object.hasOwn(patch, name) && Array.isArray(list) && Array.isArray(order)) {
      merged[name] = ordered(list, { order, key: fieldOf(type, name)?.mergeKey, before: list });
    }
  }
  return merged;
}

interface FieldChange {
  readonly change: unknown;
  readonly order: unknown;
}

function mergeField(field: FieldSchema | undefined, value: unknown, { change, order }: FieldChange): unknown {
  const type = field?.type ?? "";
  if (isTree(change)) {
    // The values of a map have no fields of their own, unless they are objects of a type.
    const inner = field?.of === "map" ? "" : type;
    return isTree(value) ? mergeObject(inner, value, change) : withoutDirectives(inner, change);
  }
  if (!Array.isArray(change)) return change;
  const changes: readonly unknown[] = change;
  const before: readonly unknown[] = Array.isArray(value) ? value : [];
  if (field?.mergeKey !== undefined) return mergeList({ field, key: field.mergeKey, before, changes, order });
  if (field?.merges === true) return mergeValues({ before, changes, order });
  return changes;
}

interface ListChange {
  readonly field: FieldSchema;
  readonly key: string;
  readonly before: readonly unknown[];
  readonly changes: readonly unknown[];
  readonly order: unknown;
}

/** Merges a list of objects by their key. */
function mergeList({ field, key, before, changes, order }: ListChange): readonly unknown[] {
  const elements = changes.map((change) => asTree(change, key));
  if (elements.some((element) => element[DIRECTIVE] === "replace")) {
    const kept = elements.filter((element) => element[DIRECTIVE] !== "replace");
    const whole = elements.find((element) => element[DIRECTIVE] === "replace" && Object.keys(element).length > 1);
    return (whole === undefined ? kept : elements).flatMap((element) => withoutDirectives(field.type, element) ?? []);
  }
  for (const element of elements) {
    if (element[key] !== undefined) continue;
    throw wrongPatch(`map: ${goText(element)} does not contain declared merge key: ${key}`);
  }
  // What is deleted goes first, as in Kubernetes. By their keys, because a list may be long.
  const isDeletion = (element: Tree): boolean => element[DIRECTIVE] === "delete";
  const gone = new Set(elements.filter(isDeletion).map((element) => idOf(element, key)));
  const merged = before.filter((one) => !isTree(one) || !gone.has(idOf(one, key)));
  const places = new Map<string, number>();
  for (const [index, one] of merged.entries()) {
    const id = idOf(one, key);
    if (isTree(one) && !places.has(id)) places.set(id, index);
  }
  for (const element of elements.filter((one) => !isDeletion(one))) {
    const id = idOf(element, key);
    const index = places.get(id);
    const found = index === undefined ? undefined : merged[index];
    const next = isTree(found) ? mergeObject(field.type, found, element) : withoutDirectives(field.type, element);
    if (index === undefined) {
      places.set(id, merged.length);
      merged.push(next);
    } else merged[index] = next;
  }
  const kept = elements.filter((one) => !isDeletion(one));
  // Without an order of its own, a patch orders what it names.
  const sorted = ordered(merged, { order: kept, key, before });
  if (!Array.isArray(order)) return sorted;
  checkOrder(kept, order, key);
  return ordered(sorted, { order, key, before });
}

/** What a patch says must come in the order that it asks for. */
function checkOrder(patch: readonly unknown[], order: readonly unknown[], key: string | undefined): void {
  let at = 0;
  for (const id of order.map((one) => idOf(one, key))) {
    if (at < patch.length && idOf(patch[at], key) === id) at++;
  }
  if (at === patch.length) return;
  const [said, wanted] = [patch, order].map(goText);
  throw wrongPatch(`The order in patch list:\n${said}\n doesn't match $setElementOrder list:\n${wanted}\n`);
}

/** Adds values to a list without keys. */
function mergeValues({ before, changes, order }: Pick<ListChange, "before" | "changes" | "order">): readonly unknown[] {
  const known = new Set(before.map((one) => idOf(one, undefined)));
  const merged = [...before, ...changes.filter((change) => !known.has(idOf(change, undefined)))];
  const sorted = ordered(merged, { order: changes, key: undefined, before });
  if (!Array.isArray(order)) return sorted;
  checkOrder(changes, order, undefined);
  return ordered(sorted, { order, key: undefined, before });
}

interface OrderOptions {
  readonly order: readonly unknown[];
  /** The key of elements that are objects. */
  readonly key: string | undefined;
  /** The list on the server before the patch. */
  readonly before: readonly unknown[];
}

/**
 * Elements that the client knows come in its order; the others keep theirs, and stand before the first known one that
 * they stood before on the server.
 */
function ordered(list: readonly unknown[], { order, key, before }: OrderOptions): unknown[] {
  const positions = (all: readonly unknown[]): ReadonlyMap<string, number> => {
    const found = new Map<string, number>();
    for (const [index, element] of all.entries()) {
      const id = idOf(element, key);
      if (!found.has(id)) found.set(id, index);
    }
    return found;
  };
  const wanted = positions(order);
  const server = positions(before);
  const placed = list.map((element) => {
    const id = idOf(element, key);
    return { element, wantedAt: wanted.get(id), serverAt: server.get(id) };
  });
  const known = placed
    .filter(({ wantedAt }) => wantedAt !== undefined)
    .sort((a, b) => (a.wantedAt ?? 0) - (b.wantedAt ?? 0));
  const others = placed.filter(({ wantedAt }) => wantedAt === undefined);
  const result: unknown[] = [];
  let [left, right] = [0, 0];
  while (left < others.length || right < known.length) {
    const [other, next] = [others[left], known[right]];
    const isBefore = other?.serverAt !== undefined && next?.serverAt !== undefined && other.serverAt < next.serverAt;
    if (next === undefined || isBefore) {
      result.push(other?.element);
      left++;
    } else {
      result.push(next.element);
      right++;
    }
  }
  return result;
}

/** What tells elements of a list apart: their key if they are objects, else their value. */
function idOf(element: unknown, key: string | undefined): string {
  return JSON.stringify(key === undefined || !isTree(element) ? element : (element[key] ?? null));
}

/** A copy with only the keys that `$retainKeys` names, if the patch has it. */
function retained(object: Tree, patch: Tree): Tree {
  const keys = patch[RETAIN_KEYS];
  if (keys === undefined) return { ...object };
  const isKept = (key: string): boolean => key.startsWith("$") || (Array.isArray(keys) && keys.includes(key));
  if (!Array.isArray(keys) || !Object.keys(patch).every(isKept)) throw badRequest("invalid patch format of retainKeys");
  return Object.fromEntries(Object.entries(object).filter(([key]) => keys.includes(key)));
}

function deleteValues(merged: Tree, name: string, values: unknown): void {
  const list = merged[name];
  if (!Array.isArray(list) || !Array.isArray(values)) return;
  const gone = new Set(values.map((value: unknown) => idOf(value, undefined)));
  merged[name] = list.filter((one: unknown) => !gone.has(idOf(one, undefined)));
}

/** A patch that Kubernetes cannot use either; it does not tell that the client is to blame. */
function wrongPatch(message: string): StatusError {
  return new StatusError({ code: 500, reason: "", message: message.slice(0, MOST_MESSAGE) });
}

/** A value as Go prints it. */
function goText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (!isTree(value)) return value === null ? "<nil>" : String(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${fields.map(([key, inner]) => `${key}:${goText(inner)}`).join(" ")}]`;
}

function asTree(value: unknown, key: string): Tree {
  if (isTree(value)) return value;
  throw badRequest(`expected an object with the merge key ${key}, found ${JSON.stringify(value)}`);
}

/** What a patch says about something that is not there: without directives, and without what it deletes. */
function withoutDirectives(type: string, patch: Tree): Tree | undefined {
  if (patch[DIRECTIVE] === "delete") return undefined;
  const plain: Tree = {};
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$") || value === null) continue;
    const merged = mergeField(fieldOf(type, key), undefined, { change: value, order: undefined });
    if (merged !== undefined) setOwn(plain, key, merged);
  }
  return plain;
}
