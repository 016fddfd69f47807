/** One thing that is wrong with an object: where, what stands there, what is wrong with it and what to do. */
export interface FieldProblem {
  /** Field path such as `spec.containers[0].image`. */
  readonly path: string;
  /** The value as short text; empty when there is none or when it must not be shown. */
  readonly value: string;
  readonly message: string;
  readonly fix: string;
}

const LONGEST_SHOWN = 60;

/** The value as it may be shown in a message: JSON, cut. */
export function shownValue(value: unknown): string {
  if (value === undefined) return "";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, LONGEST_SHOWN + 1) : value) ?? String(value);
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
}

/** `path: message (value): fix`, one line. */
export function formatProblem({ path, value, message, fix }: FieldProblem): string {
  const shown = value === "" ? "" : ` (${value})`;
  return `${path}: ${message}${shown}${fix === "" ? "" : `; ${fix}`}`;
}
