import { apiSchemas, atomicTypes } from "../../model/generated/api-schema.ts";
import { type FieldSchema, schemas, type TypeSchema } from "../../model/generated/schema.ts";

/** The fields of a type of the served kinds; undefined for a scalar. */
export function typeSchema(type: string): TypeSchema | undefined {
  if (Object.hasOwn(schemas, type)) return schemas[type];
  return Object.hasOwn(apiSchemas, type) ? apiSchemas[type] : undefined;
}

/** A field of a type; undefined if it has none of that name. */
export function fieldOf(type: string, name: string): FieldSchema | undefined {
  const schema = typeSchema(type);
  return schema !== undefined && Object.hasOwn(schema, name) ? schema[name] : undefined;
}

/** True if field managers own objects of the type, or the value of the field, as a whole. */
export function isAtomic(field: FieldSchema): boolean {
  return field.isAtomic === true || (field.of === undefined && atomicTypes.has(field.type));
}

/** Whether a value is an object with fields: no list, no null. */
export function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
