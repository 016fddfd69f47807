import { shownValue } from "../model/problem.ts";

/** One thing that is wrong, or noteworthy, in a configuration. */
export interface ConfigProblem {
  /** The file, or undefined for a flag or a rule between settings. */
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  /** Field path such as `evictionHard[memory.available]`, or empty when it is about the whole file. */
  readonly field: string;
  /** The value as it may be shown; empty when there is none or it is secret. */
  readonly value: string;
  /** What is wrong and what is allowed. */
  readonly message: string;
  /** Only a breach of strictness: an unknown field or a doubled key. A warning unless strict. */
  readonly isStrictness?: boolean;
}

/** `file:line: field: message, not value`, one line. */
export function formatConfigProblem({ file, line, field, value, message }: ConfigProblem): string {
  const place = file === undefined ? "" : `${file}${line === undefined ? "" : `:${line}`}: `;
  const shown = value === "" ? "" : ` (it is ${value})`;
  return `${place}${field === "" ? "" : `${field}: `}${message}${shown}`;
}

/** A path inside an option's value: `reservedMemory[0].limits`, `evictionHard[memory.available]`. */
export function fieldPath(option: string, steps: readonly (string | number)[]): string {
  return steps.reduce<string>((path, step) => {
    return typeof step === "number" || !/^[A-Za-z]\w*$/.test(step) ? `${path}[${step}]` : `${path}.${step}`;
  }, option);
}

/** What may be shown of a value. */
export function shownIfPublic(value: unknown, isSecret: boolean): string {
  return isSecret || value === undefined ? "" : shownValue(value);
}
