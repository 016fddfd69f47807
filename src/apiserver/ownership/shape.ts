import { atomicTypes } from "../../model/generated/api-schema.ts";
import type { FieldSchema } from "../../model/generated/schema.ts";
import { fieldOf, isAtomic, isTree, typeSchema } from "../schema/type-schema.ts";
import { badRequest } from "../status/status-error.ts";
import type { PathElement } from "./field-set.ts";

/** How the parts of a value are owned. */
export type Shape =
  | { readonly kind: "leaf" }
  /** An object with named fields. */
  | { readonly kind: "struct"; readonly type: string }
  /** Keys that users choose. */
  | { readonly kind: "map"; readonly element: Shape }
  /** A list whose elements are told apart by keys, or by their value. */
  | {
      readonly kind: "list";
      readonly element: Shape;
      readonly type: string;
      readonly keys: readonly string[] | undefined;
    };

const LEAF: Shape = { kind: "leaf" };

export function structShape(type: string): Shape {
  return { kind: "struct", type };
}

/** The shape of a field; a field that the type does not have is owned as a whole. */
export function fieldShape(type: string, name: string): Shape {
  const field = fieldOf(type, name);
  return field === undefined ? LEAF : shapeOf(field);
}

function shapeOf(field: FieldSchema): Shape {
  // An element of a type that is owned as a whole has no parts either, such as a reference to an owner.
  const isWhole = typeSchema(field.type) === undefined || (field.of === "list" && atomicTypes.has(field.type));
  const element: Shape = isWhole ? LEAF : structShape(field.type);
  if (field.of === "list") {
    if (field.keys === undefined && field.isSet !== true) return LEAF;
    return { kind: "list", element, type: field.type, keys: field.keys };
  }
  if (isAtomic(field)) return LEAF;
  return field.of === "map" ? { kind: "map", element } : element;
}

/** The path element of an element of a list. Throws `StatusError` if a key is missing. */
export function elementOf(shape: Extract<Shape, { kind: "list" }>, value: unknown): PathElement {
  if (shape.keys === undefined) return `v:${JSON.stringify(value)}`;
  const keys: Record<string, unknown> = {};
  for (const key of [...shape.keys].sort()) {
    const found = isTree(value) && Object.hasOwn(value, key) ? value[key] : fieldOf(shape.type, key)?.default;
    if (found === undefined) {
      const message = `associative list with keys has an element that omits key field ${JSON.stringify(key)}`;
      throw badRequest(`${message} (and doesn't have default value)`);
    }
    keys[key] = found;
  }
  return `k:${JSON.stringify(keys)}`;
}
