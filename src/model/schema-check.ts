import { nearest } from "../lib/nearest.ts";
import { type FieldSchema, kinds, schemas, type TypeSchema } from "./generated/schema.ts";
import { type FieldProblem, shownValue } from "./problem.ts";
import { tryParseQuantity } from "./quantity.ts";

/** What a check against the schema found. Only `errors` make the object unusable. */
export interface SchemaFindings {
  readonly errors: readonly FieldProblem[];
  /** Fields that do not exist; they are ignored, as in Kubernetes. */
  readonly warnings: readonly FieldProblem[];
}

interface Findings {
  readonly errors: FieldProblem[];
  readonly warnings: FieldProblem[];
}

/** A broken file of megabytes must not become a report of megabytes. */
const MOST_PROBLEMS = 50;
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
const BASE64 = /^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/;

/** The type's name of an `apiVersion` and `kind`, or undefined for one that the agent does not know. */
export function typeOfKind(apiVersion: string, kind: string): string | undefined {
  const key = `${apiVersion}/${kind}`;
  return Object.hasOwn(kinds, key) ? kinds[key] : undefined;
}

/** Checks types, required fields and field names of a whole object (`type` as in generated/schema.ts, such as `Pod`). */
export function checkObject(type: string, value: unknown): SchemaFindings {
  const findings: Findings = { errors: [], warnings: [] };
  checkType(type, { path: "", value }, findings);
  return { errors: findings.errors.slice(0, MOST_PROBLEMS), warnings: findings.warnings.slice(0, MOST_PROBLEMS) };
}

interface Place {
  readonly path: string;
  readonly value: unknown;
}

function checkType(type: string, place: Place, findings: Findings): void {
  if (isFull(findings)) return;
  const schema = schemaOf(type);
  if (schema === undefined) checkScalar(type, place, findings);
  else if (isObject(place.value)) checkFields(schema, { path: place.path, value: place.value }, findings);
  else addError(findings, place, [`must be an object (${type})`, "write its fields below it, indented"]);
}

function checkFields(schema: TypeSchema, place: { path: string; value: object }, findings: Findings): void {
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(place.value)) {
    const path = join(place.path, name);
    const field = Object.hasOwn(schema, name) ? schema[name] : undefined;
    if (field === undefined) {
      if (!isFull(findings)) findings.warnings.push(unknownField(path, name, schema));
    } else if (value !== null && value !== undefined) {
      seen.add(name);
      checkField(field, { path, value }, findings);
    }
  }
  for (const [name, field] of Object.entries(schema)) {
    // A required field with a real default may be left out; "" and 0 are only Go's zero values.
    if (!field.required || Boolean(field.default) || seen.has(name)) continue;
    addError(findings, { path: join(place.path, name), value: undefined }, ["is required", `add ${name}`]);
  }
}

function checkField(field: FieldSchema, place: Place, findings: Findings): void {
  if (field.of === "list") {
    if (!Array.isArray(place.value)) {
      addError(findings, place, ["must be a list", "write each element behind a dash, or in [ ]"]);
      return;
    }
    for (const [index, value] of place.value.entries()) {
      checkType(field.type, { path: `${place.path}[${index}]`, value }, findings);
    }
  } else if (field.of === "map") {
    if (!isObject(place.value)) {
      addError(findings, place, ["must be a map", "write each entry as key: value"]);
      return;
    }
    for (const [key, value] of Object.entries(place.value)) {
      // `key:` without a value is an empty text, as in Kubernetes.
      if (value === null && field.type === "string") continue;
      checkType(field.type, { path: join(place.path, key), value }, findings);
    }
  } else {
    checkType(field.type, place, findings);
  }
}

function checkScalar(type: string, place: Place, findings: Findings): void {
  const { value } = place;
  switch (type) {
    case "string":
      if (typeof value !== "string") addError(findings, place, ["must be text", `put it in quotes${quoted(value)}`]);
      break;
    case "boolean":
      if (typeof value !== "boolean") addError(findings, place, ["must be true or false", "write it without quotes"]);
      break;
    case "int32":
    case "int64":
      checkInteger(type, place, findings);
      break;
    case "number":
      if (typeof value !== "number") addError(findings, place, ["must be a number", "write it without quotes"]);
      break;
    case "quantity":
      if (!isQuantity(value)) addError(findings, place, ["is not a quantity", "write it like 500m, 1.5 or 128Mi"]);
      break;
    case "intOrString":
      if (typeof value !== "string" && !Number.isInteger(value)) {
        addError(findings, place, ["must be a whole number or text", "write a port's number or its name"]);
      }
      break;
    case "time":
    case "microTime":
      if (typeof value !== "string" || !RFC3339.test(value) || Number.isNaN(Date.parse(value))) {
        addError(findings, place, ["is not a time", "write it like 2026-01-31T12:00:00Z"]);
      }
      break;
    case "bytes":
      if (typeof value !== "string" || !BASE64.test(value)) {
        addError(findings, { ...place, value: undefined }, ["is not base64", "encode the bytes with base64"]);
      }
      break;
    default:
  }
}

function checkInteger(type: "int32" | "int64", place: Place, findings: Findings): void {
  const { value } = place;
  if (typeof value !== "number" || !Number.isInteger(value)) {
    const fix = typeof value === "string" ? "write it without quotes" : "write a number without a fraction";
    addError(findings, place, ["must be a whole number", fix]);
    return;
  }
  const limit = type === "int32" ? 2 ** 31 : 2 ** 63;
  if (value < -limit || value >= limit) addError(findings, place, ["is out of range", `it must fit ${type}`]);
}

function isQuantity(value: unknown): boolean {
  return (typeof value === "string" || typeof value === "number") && tryParseQuantity(String(value)) !== undefined;
}

function unknownField(path: string, name: string, schema: TypeSchema): FieldProblem {
  const [near] = nearest(name, Object.keys(schema), 1);
  const fix = near === undefined ? "remove it" : `did you mean ${near}?`;
  return { path, value: "", message: "unknown field, ignored", fix };
}

function addError(findings: Findings, place: Place, [message, fix]: readonly [string, string]): void {
  if (isFull(findings)) return;
  const path = place.path === "" ? "(object)" : place.path;
  findings.errors.push({ path, value: isSecretPath(path) ? "" : shownValue(place.value), message, fix });
}

/** Values of variables and of secrets are never shown: they may be passwords. */
function isSecretPath(path: string): boolean {
  return /(?:^|\.)(?:env\[\d+\]\.value|data\..*|stringData\..*)$/.test(path);
}

function quoted(value: unknown): string {
  return typeof value === "object" ? "" : `: it is a ${typeof value} now`;
}

function isFull(findings: Findings): boolean {
  return findings.errors.length >= MOST_PROBLEMS || findings.warnings.length >= MOST_PROBLEMS * 2;
}

function schemaOf(type: string): TypeSchema | undefined {
  return Object.hasOwn(schemas, type) ? schemas[type] : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function join(path: string, name: string): string {
  const shown = name.length > 80 ? `${name.slice(0, 80)}…` : name;
  if (!/^[\w$-]+$/.test(shown)) return `${path}[${JSON.stringify(shown)}]`;
  return path === "" ? shown : `${path}.${shown}`;
}
