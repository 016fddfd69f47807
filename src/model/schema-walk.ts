import { schemas } from "./generated/schema.ts";
import { canonicalQuantity } from "./quantity.ts";

/**
 * A copy in the one form that equal content has: `null` is the same as absent, quantities are canonical text.
 * Unknown fields stay. The value has passed `checkObject`; nothing is shared with it that could be changed later.
 */
export function normalizeObject(type: string, value: unknown): unknown {
  return walk(type, value, true);
}

/** A copy without the fields that the schema does not know. */
export function pruneObject(type: string, value: unknown): unknown {
  return walk(type, value, false);
}

function walk(type: string, value: unknown, keepsUnknown: boolean): unknown {
  if (type === "quantity") return canonicalQuantity(String(value));
  const schema = Object.hasOwn(schemas, type) ? schemas[type] : undefined;
  if (schema === undefined || typeof value !== "object" || value === null || Array.isArray(value)) return copy(value);
  const entries: [string, unknown][] = [];
  for (const [name, inner] of Object.entries(value)) {
    if (inner === null || inner === undefined) continue;
    const field = Object.hasOwn(schema, name) ? schema[name] : undefined;
    if (field === undefined) {
      if (keepsUnknown) entries.push([name, copy(inner)]);
    } else if (field.of === "list" && Array.isArray(inner)) {
      entries.push([name, inner.map((element) => walk(field.type, element, keepsUnknown))]);
    } else if (field.of === "map" && typeof inner === "object") {
      const walked = Object.entries(inner).map(([key, element]) => {
        const value: unknown = element === null && field.type === "string" ? "" : element;
        return [key, walk(field.type, value, keepsUnknown)];
      });
      entries.push([name, Object.fromEntries(walked)]);
    } else {
      entries.push([name, walk(field.type, inner, keepsUnknown)]);
    }
  }
  return Object.fromEntries(entries);
}

function copy(value: unknown): unknown {
  return typeof value === "object" && value !== null ? structuredClone(value) : value;
}
