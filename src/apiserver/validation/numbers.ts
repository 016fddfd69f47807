import { type FieldError, invalid } from "../status/field-error.ts";

/** An error for a number below zero; undefined passes. */
export function nonNegative(value: number | undefined, path: string): FieldError[] {
  return value === undefined || value >= 0 ? [] : [invalid(path, value, "must be greater than or equal to 0")];
}

/** An error for a number that is not above zero; undefined passes. */
export function positive(value: number | undefined, path: string): FieldError[] {
  return value === undefined || value > 0 ? [] : [invalid(path, value, "must be greater than 0")];
}

/** What is wrong with a number or percentage; undefined passes. */
export function countOrPercent(value: number | string | undefined, path: string): FieldError[] {
  if (typeof value === "number") return nonNegative(value, path);
  if (value === undefined || /^[0-9]+%$/.test(value)) return [];
  const message =
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
  return [invalid(path, value, message)];
}
