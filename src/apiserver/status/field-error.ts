/** What is wrong with a field; the words are the reasons of Kubernetes' causes. */
export type FieldErrorType =
  | "FieldValueNotFound"
  | "FieldValueRequired"
  | "FieldValueDuplicate"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueForbidden"
  | "FieldValueTooLong"
  | "FieldValueTooMany";

/** One invalid field of an object. */
export interface FieldError {
  readonly type: FieldErrorType;
  /** `spec.containers[0].image`. */
  readonly field: string;
  /** `Required value`, `Invalid value: "x": must be …`: everything but the field. */
  readonly body: string;
}

/** A value that is missing. */
export function required(field: string, detail = ""): FieldError {
  return { type: "FieldValueRequired", field, body: withDetail("Required value", detail) };
}

/** A value that is not allowed. */
export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, body: withDetail(`Invalid value: ${shown(value)}`, detail) };
}

/** A value that is not allowed, and too large or too plain to be shown. */
export function invalidField(field: string, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, body: `Invalid value: ${detail}` };
}

/** A value outside a fixed set of words. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const words = supported.map((word) => JSON.stringify(word)).join(", ");
  const body = withDetail(`Unsupported value: ${shown(value)}`, words === "" ? "" : `supported values: ${words}`);
  return { type: "FieldValueNotSupported", field, body };
}

/** A value that must be unique and is not. */
export function duplicate(field: string, value: unknown): FieldError {
  return { type: "FieldValueDuplicate", field, body: `Duplicate value: ${shown(value)}` };
}

/** A name that stands for nothing. */
export function notFoundValue(field: string, value: unknown): FieldError {
  return { type: "FieldValueNotFound", field, body: `Not found: ${shown(value)}` };
}

/** A field that must not be set, or not in this way. */
export function forbidden(field: string, detail: string): FieldError {
  return { type: "FieldValueForbidden", field, body: withDetail("Forbidden", detail) };
}

/** A value of more than so many bytes. */
export function tooLong(field: string, bytes: number): FieldError {
  return { type: "FieldValueTooLong", field, body: `Too long: may not be more than ${bytes} bytes` };
}

/** A list of more than so many elements. */
export function tooMany(field: string, length: number, most: number): FieldError {
  return { type: "FieldValueTooMany", field, body: `Too many: ${length}: must have at most ${most} items` };
}

/** The message for a value that an update may not change. */
export const IMMUTABLE = "field is immutable";

/** `field: body`, as in messages. */
export function fieldErrorText({ field, body }: FieldError): string {
  return `${field}: ${body}`;
}

function withDetail(text: string, detail: string): string {
  return detail === "" ? text : `${text}: ${detail}`;
}

function shown(value: unknown): string {
  return value === undefined ? "null" : JSON.stringify(value);
}
