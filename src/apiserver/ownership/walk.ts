import { isDeepStrictEqual } from "node:util";
import { setOwn } from "../patch/merge-patch.ts";
import { isTree } from "../schema/type-schema.ts";
import { badRequest } from "../status/status-error.ts";
import { FieldSet, FieldSetBuilder, type PathElement } from "./field-set.ts";
import { elementOf, fieldShape, type Shape, structShape } from "./shape.ts";

type Tree = Record<string, unknown>;

/** The parts of a value by their path elements; undefined for a leaf. Elements that occur twice are left out. */
function partsOf(
  shape: Shape,
  value: unknown,
): Map<PathElement, { readonly shape: Shape; readonly value: unknown }> | undefined {
  const parts = new Map<PathElement, { readonly shape: Shape; readonly value: unknown }>();
  if (shape.kind === "list") {
    if (!Array.isArray(value)) return undefined;
    for (const item of value as readonly unknown[])
      parts.set(elementOf(shape, item), { shape: shape.element, value: item });
    return parts;
  }
  if (shape.kind === "leaf" || !isTree(value)) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    parts.set(`f:${key}`, { shape: shape.kind === "map" ? shape.element : fieldShape(shape.type, key), value: inner });
  }
  return parts;
}

/** All that an object of a type says, as its applier owns it. */
export function fieldSetOf(type: string, tree: Tree): FieldSet {
  const builder = new FieldSetBuilder();
  collect(structShape(type), tree, builder);
  return builder.build();
}

function collect(shape: Shape, value: unknown, at: FieldSetBuilder): void {
  const parts = partsOf(shape, value);
  if (parts === undefined) return at.add();
  for (const [element, part] of parts) {
    const place = at.at(element);
    collect(part.shape, part.value, place);
    // Elements of lists and keys of maps are owned themselves, and so is what is empty.
    const isEmpty = part.value === null || (isTree(part.value) && Object.keys(part.value).length === 0);
    if (shape.kind !== "struct" || isEmpty) place.add();
  }
}

/** What differs between two objects. No path is in two of the sets. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Compares two objects of a type. */
export function compareTrees(type: string, before: Tree, after: Tree): Comparison {
  const builders = { added: new FieldSetBuilder(), modified: new FieldSetBuilder(), removed: new FieldSetBuilder() };
  compare(structShape(type), { before, after }, builders);
  return {
    added: builders.added.build(),
    modified: builders.modified.build(),
    removed: builders.removed.build(),
  };
}

interface Builders {
  readonly added: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly removed: FieldSetBuilder;
}

function compare(shape: Shape, { before, after }: { before: unknown; after: unknown }, at: Builders): void {
  const left = before === undefined ? undefined : partsOf(shape, before);
  const right = after === undefined ? undefined : partsOf(shape, after);
  const hasParts = (left?.size ?? 0) + (right?.size ?? 0) > 0;
  if (hasParts) {
    for (const element of new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])) {
      const one = left?.get(element);
      const other = right?.get(element);
      const inner = { added: at.added.at(element), modified: at.modified.at(element), removed: at.removed.at(element) };
      const child = (one ?? other)?.shape ?? shape;
      compare(child, { before: one?.value, after: other?.value }, inner);
    }
  }
  if (before === undefined) at.added.add();
  else if (after === undefined) at.removed.add();
  else if (!hasParts && !isDeepStrictEqual(before, after)) at.modified.add();
}

/** Merges what an applier says into the live object: its values win, and the order of its lists. */
export function mergeTrees(type: string, live: Tree, config: Tree): Tree {
  const merged = merge(structShape(type), live, config);
  return isTree(merged) ? merged : {};
}

function merge(shape: Shape, live: unknown, config: unknown): unknown {
  if (config === undefined) return live;
  if (live === undefined || live === null || shape.kind === "leaf") return config;
  if (shape.kind === "list") {
    return Array.isArray(live) && Array.isArray(config) ? mergeLists(shape, live, config) : config;
  }
  if (!isTree(live) || !isTree(config)) return config;
  const merged: Tree = { ...live };
  for (const [key, value] of Object.entries(config)) {
    const inner = shape.kind === "map" ? shape.element : fieldShape(shape.type, key);
    setOwn(merged, key, merge(inner, Object.hasOwn(live, key) ? live[key] : undefined, value));
  }
  return merged;
}

/** Elements that both have come in the applier's order, others stay behind the one that they followed. */
function mergeLists(
  shape: Extract<Shape, { kind: "list" }>,
  live: readonly unknown[],
  config: readonly unknown[],
): unknown[] {
  const wanted = new Map<PathElement, unknown>();
  for (const item of config) {
    const element = elementOf(shape, item);
    if (wanted.has(element)) throw badRequest(`duplicate entries for key ${element.slice(2)}`);
    wanted.set(element, item);
  }
  const known = new Map(live.map((item) => [elementOf(shape, item), item]));
  const left = live.map((item) => elementOf(shape, item));
  const right = [...wanted.keys()];
  const shared = right.filter((element) => known.has(element));
  /** The first of `shared` that is not taken yet. */
  let s = 0;
  const done = new Set<PathElement>();
  const merged: unknown[] = [];
  const take = (element: PathElement): void => {
    done.add(element);
    merged.push(merge(shape.element, known.get(element), wanted.get(element)));
    if (shared[s] === element) s++;
  };
  let l = 0;
  let r = 0;
  while (l < left.length || r < right.length) {
    const mine = left[l];
    const theirs = right[r];
    if (mine !== undefined && !wanted.has(mine)) {
      merged.push(live[l]);
      l++;
    } else if (
      mine !== undefined &&
      (done.has(mine) || (mine !== theirs && shared[s] !== undefined && shared[s] !== mine))
    ) {
      // Taken already, or to be taken later in the applier's order.
      l++;
    } else if (theirs !== undefined) {
      if (!done.has(theirs)) take(theirs);
      r++;
      if (mine === theirs) l++;
    } else l++;
  }
  return merged;
}

/** The object without the places of a set and what is below them. */
export function removeItems(type: string, tree: Tree, items: FieldSet): Tree {
  const left = remove(structShape(type), tree, items);
  return isTree(left) ? left : {};
}

function remove(shape: Shape, value: unknown, items: FieldSet): unknown {
  if (items.children.size === 0 || shape.kind === "leaf") return value;
  if (shape.kind === "list") {
    if (!Array.isArray(value)) return value;
    const kept = (value as readonly unknown[]).flatMap((item) => {
      const inner = items.child(elementOf(shape, item));
      return inner.isMember ? [] : [remove(shape.element, item, inner)];
    });
    return kept.length > 0 ? kept : undefined;
  }
  if (!isTree(value)) return value;
  const kept: Tree = {};
  for (const [key, inner] of Object.entries(value)) {
    const below = items.child(`f:${key}`);
    if (below.isMember) continue;
    const left = remove(shape.kind === "map" ? shape.element : fieldShape(shape.type, key), inner, below);
    if (left !== undefined) setOwn(kept, key, left);
  }
  return Object.keys(kept).length > 0 ? kept : undefined;
}

/** The set with the named fields on the way to its places, which are usually left out. */
export function withNamedFields(type: string, set: FieldSet): FieldSet {
  return named(structShape(type), set);
}

function named(shape: Shape, set: FieldSet): FieldSet {
  const children = new Map<PathElement, FieldSet>();
  for (const [element, node] of set.children) {
    const isField = shape.kind === "struct" && element.startsWith("f:");
    const inner = isField ? fieldShape(shape.type, element.slice(2)) : innerShape(shape);
    const next = named(inner, node);
    children.set(element, isField && node.children.size > 0 ? FieldSet.of(true, next.children) : next);
  }
  return FieldSet.of(set.isMember, children);
}

function innerShape(shape: Shape): Shape {
  return shape.kind === "map" || shape.kind === "list" ? shape.element : { kind: "leaf" };
}
