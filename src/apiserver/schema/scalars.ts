import { canonicalQuantity, tryParseQuantity } from "../../model/quantity.ts";

/** Where a value stands. */
export interface ScalarPlace {
  /** The path of the field without indexes. */
  readonly fields: string;
  /** The type that has the field. */
  readonly owner: string;
}

/** A value of the wrong type; the message is that of Go's JSON decoder, which clients know. */
export class TypeMismatch extends Error {
  override readonly name = "TypeMismatch";

  constructor(value: unknown, wanted: string, { fields, owner }: ScalarPlace) {
    const where = fields === "" ? "Go value" : `Go struct field ${owner}.${fields}`;
    super(`json: cannot unmarshal ${jsonWord(value)} into ${where} of type ${wanted}`);
  }
}

/** A text that is no quantity, time or base64. */
export class FormatMismatch extends TypeMismatch {
  constructor(message: string) {
    super(undefined, "", { fields: "", owner: "" });
    this.message = message;
  }
}

const GO_NAMES: Readonly<Record<string, string>> = {
  string: "string",
  boolean: "bool",
  int32: "int32",
  int64: "int64",
  number: "float64",
  bytes: "[]uint8",
  quantity: "resource.Quantity",
  intOrString: "intstr.IntOrString",
  time: "v1.Time",
  microTime: "v1.MicroTime",
};

/** A type as Go's messages call it. */
export function goNameOf(type: string): string {
  return GO_NAMES[type] ?? `v1.${type}`;
}

const INT32 = 2 ** 31;
const QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** A scalar in its one form. Throws `TypeMismatch`. */
export function decodeScalar(type: string, value: unknown, place: ScalarPlace): unknown {
  const wrong = (): TypeMismatch => new TypeMismatch(value, goNameOf(type), place);
  switch (type) {
    case "string":
      if (typeof value !== "string") throw wrong();
      return value;
    case "boolean":
      if (typeof value !== "boolean") throw wrong();
      return value;
    case "int32":
    case "int64":
      if (typeof value !== "number" || !Number.isInteger(value)) throw wrong();
      if (type === "int32" && (value < -INT32 || value >= INT32)) throw wrong();
      return value;
    case "number":
      if (typeof value !== "number") throw wrong();
      return value;
    case "quantity":
      return decodeQuantity(value);
    case "intOrString":
      if (typeof value !== "string" && !Number.isInteger(value)) throw wrong();
      return value;
    case "time":
      return decodeTime(value, { digits: 0, wrong });
    case "microTime":
      return decodeTime(value, { digits: 6, wrong });
    case "bytes":
      return decodeBytes(value, wrong);
    default:
      return value;
  }
}

/** The zero value of a scalar, as it is shown. */
export function zeroOf(type: string): unknown {
  switch (type) {
    case "boolean":
      return false;
    case "int32":
    case "int64":
    case "number":
    case "intOrString":
      return 0;
    case "quantity":
      return "0";
    case "time":
    case "microTime":
    case "any":
      return null;
    default:
      return "";
  }
}

export function isZeroScalar(value: unknown): boolean {
  return value === "" || value === 0 || value === false;
}

function decodeQuantity(value: unknown): string {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string" || tryParseQuantity(text) === undefined) throw new FormatMismatch(QUANTITY_RULE);
  return canonicalQuantity(text);
}

const RFC3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|z|[+-]\d\d:\d\d)$/;

function decodeTime(value: unknown, { digits, wrong }: { digits: number; wrong: () => TypeMismatch }): string {
  if (typeof value !== "string") throw wrong();
  const match = RFC3339.exec(value);
  const isExact = digits === 0 || match?.[3]?.length === digits;
  const at = match === null || !isExact ? Number.NaN : Date.parse(`${match[1]}T${match[2]}${match[4]}`);
  if (Number.isNaN(at)) {
    const layout = `2006-01-02T15:04:05${digits > 0 ? ".000000" : ""}Z07:00`;
    const [rest, part] = timeMismatch(value, digits);
    const why = `cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(part)}`;
    throw new FormatMismatch(`parsing time ${JSON.stringify(value)} as "${layout}": ${why}`);
  }
  const seconds = new Date(at).toISOString().slice(0, 19);
  if (digits === 0) return `${seconds}Z`;
  return `${seconds}.${(match?.[3] ?? "").padEnd(digits, "0").slice(0, digits)}Z`;
}

/** Where a text stops being a time, and what should be there: as Go's parser reports it. */
function timeMismatch(text: string, digits: number): readonly [rest: string, part: string] {
  const parts: readonly (readonly [RegExp, string])[] = [
    [/^\d{4}/, "2006"],
    [/^-/, "-"],
    [/^\d\d/, "01"],
    [/^-/, "-"],
    [/^\d\d/, "02"],
    [/^T/, "T"],
    [/^\d\d/, "15"],
    [/^:/, ":"],
    [/^\d\d/, "04"],
    [/^:/, ":"],
    [/^\d\d/, "05"],
    ...(digits > 0 ? [[/^\.\d{6}(?!\d)/, ".000000"] as const] : [[/^(\.\d+)?/, ""] as const]),
    [/^(Z|[+-]\d\d:\d\d)/, "Z07:00"],
  ];
  let rest = text;
  for (const [pattern, part] of parts) {
    const found = pattern.exec(rest)?.[0];
    if (found === undefined) return [rest, part];
    rest = rest.slice(found.length);
  }
  return [rest, ""];
}

function decodeBytes(value: unknown, wrong: () => TypeMismatch): string {
  if (typeof value !== "string") throw wrong();
  const text = value.replaceAll(/[\r\n]/g, "");
  const bad = text.search(/[^A-Za-z0-9+/=]/);
  const isWhole = text.length % 4 === 0 && !/=[^=]/.test(text);
  if (bad !== -1 || !isWhole) {
    throw new FormatMismatch(`illegal base64 data at input byte ${bad === -1 ? Math.max(0, text.length - 1) : bad}`);
  }
  return text;
}

function jsonWord(value: unknown): string {
  if (Array.isArray(value)) return "array";
  switch (typeof value) {
    case "string":
      return "string";
    case "number":
      return Number.isInteger(value) ? "number" : `number ${value}`;
    case "boolean":
      return "bool";
    default:
      return "object";
  }
}
