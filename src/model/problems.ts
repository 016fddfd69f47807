import { type FieldProblem, shownValue } from "./problem.ts";

/** Collects the problems of an object, so that all are reported at once. */
export class Problems {
  readonly list: FieldProblem[] = [];

  /** Adds a problem; `explanation` is what is wrong and what to do about it. */
  add(path: string, value: unknown, explanation: { message: string; fix: string }): void {
    this.list.push({ path, value: shownValue(value), ...explanation });
  }

  /** A value outside a fixed set of words; undefined passes. */
  oneOf(path: string, value: string | undefined, allowed: readonly string[]): void {
    if (value === undefined || allowed.includes(value)) return;
    const words = allowed.map((word) => (word === "" ? '""' : word)).join(", ");
    this.add(path, value, { message: "is not a supported value", fix: `write one of ${words}` });
  }

  /** A number outside `[least, most]`; undefined passes. */
  range(path: string, value: number | undefined, [least, most]: readonly [number, number]): void {
    if (value === undefined || (value >= least && value <= most)) return;
    const fix =
      most === Number.POSITIVE_INFINITY ? `write ${least} or more` : `write a number from ${least} to ${most}`;
    this.add(path, value, { message: "is out of range", fix });
  }
}
