import type { FieldSchema } from "../../model/generated/schema.ts";
import { MOST_VALUES } from "./json-depth.ts";
import { decodeScalar, FormatMismatch, goNameOf, isZeroScalar, TypeMismatch, zeroOf } from "./scalars.ts";
import { isTree, typeSchema } from "./type-schema.ts";

export { TypeMismatch } from "./scalars.ts";

type Tree = Record<string, unknown>;

/** An object in the form that it is stored in, and the paths of fields that the kind does not have. */
export interface DecodedTree {
  readonly object: Tree;
  readonly unknown: readonly string[];
}

interface Place {
  /** With indexes, for strict errors. */
  readonly path: string;
  /** Without indexes, as in messages about types. */
  readonly fields: string;
  /** The type that has the field. */
  readonly owner: string;
}

/**
 * Brings an object into its stored form, which is what Kubernetes' types can hold: unknown fields are dropped, null and
 * most zero values are the same as none, some fields are always there, quantities and times have one form. A copy; throws
 * `TypeMismatch` if a value has the wrong type, or there are too many.
 */
export function decodeTree(type: string, value: unknown): DecodedTree {
  const unknown: string[] = [];
  const decoder = new TreeDecoder(unknown);
  return { object: decoder.fields(type, value, { path: "", fields: "", owner: type }), unknown };
}

/**
 * Fields and elements of one object. Bodies have `MOST_VALUES`; an object may have more only because patches made it grow,
 * until it is too long to be stored.
 */
const MOST_DECODED = 4 * MOST_VALUES;

class TreeDecoder {
  private values = 0;

  constructor(private readonly unknown: string[]) {}

  fields(type: string, value: unknown, place: Place): Tree {
    const schema = typeSchema(type) ?? {};
    if (!isTree(value)) throw mismatch(value, `v1.${type}`, place);
    const decoded: Tree = {};
    for (const [name, inner] of Object.entries(value)) {
      this.count();
      const path = place.path === "" ? name : `${place.path}.${name}`;
      const field = Object.hasOwn(schema, name) ? schema[name] : undefined;
      if (field === undefined) this.unknown.push(path);
      else if (inner !== null && inner !== undefined) {
        const fields = place.fields === "" ? name : `${place.fields}.${name}`;
        const kept = this.field(field, inner, { path, fields, owner: type });
        if (kept !== undefined) decoded[name] = kept;
      }
    }
    for (const [name, field] of Object.entries(schema)) {
      if (field.zero === "keep" && decoded[name] === undefined) decoded[name] = this.zero(field);
    }
    return decoded;
  }

  /** The value of a field; undefined if it is the same as none. */
  private field(field: FieldSchema, value: unknown, place: Place): unknown {
    if (field.of === "list") return this.list(field, value, place);
    if (field.of === "map") return this.map(field, value, place);
    if (typeSchema(field.type) !== undefined) {
      const object = this.fields(field.type, value, place);
      return field.zero === "omitzero" && Object.keys(object).length === 0 ? undefined : object;
    }
    const scalar = decodeScalar(field.type, value, place);
    return field.zero === "omit" && isZeroScalar(scalar) ? undefined : scalar;
  }

  private list(field: FieldSchema, value: unknown, place: Place): unknown {
    if (!Array.isArray(value)) throw mismatch(value, `[]${goNameOf(field.type)}`, place);
    const list = value.map((element: unknown, index) =>
      this.element(field, element, { ...place, path: `${place.path}[${index}]` }),
    );
    return list.length === 0 && field.zero !== "keep" ? undefined : list;
  }

  private map(field: FieldSchema, value: unknown, place: Place): unknown {
    if (!isTree(value)) throw mismatch(value, `map[string]${goNameOf(field.type)}`, place);
    const entries = Object.entries(value).map(([key, element]): [string, unknown] => [
      key,
      this.element(field, element, { ...place, path: `${place.path}.${key}` }),
    ]);
    return entries.length === 0 && field.zero !== "keep" ? undefined : Object.fromEntries(entries);
  }

  private element(field: FieldSchema, value: unknown, place: Place): unknown {
    this.count();
    if (typeSchema(field.type) !== undefined) return this.fields(field.type, value ?? {}, place);
    return value === null ? zeroOf(field.type) : decodeScalar(field.type, value, place);
  }

  private count(): void {
    if (++this.values > MOST_DECODED) throw new FormatMismatch(`more than ${MOST_DECODED} fields and elements`);
  }

  private zero(field: FieldSchema): unknown {
    if (field.of === "list") return [];
    if (field.of === "map") return {};
    if (typeSchema(field.type) === undefined) return zeroOf(field.type);
    return this.fields(field.type, {}, { path: "", fields: "", owner: field.type });
  }
}

function mismatch(value: unknown, wanted: string, place: Place): TypeMismatch {
  return new TypeMismatch(value, wanted, place);
}
