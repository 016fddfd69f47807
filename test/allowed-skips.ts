/**
 * Tests that may be left out even in strict mode (KUBELET_STRICT=1), each with the reason. Any other skipped test fails
 * the run there: what nobody runs is not tested.
 */
interface AllowedSkip {
  /** The file of the suite, or of the unit test. */
  readonly file: string;
  /** The name of the test, or of the group of tests, that is left out. */
  readonly test: string;
  readonly why: string;
}

export interface Skip {
  readonly file: string;
  readonly test: string;
  readonly reason: string;
}

const ALLOWED: readonly AllowedSkip[] = [];

/** Those of the skipped tests that are not on the list. */
export function skipsNotAllowed<T extends Skip>(skipped: readonly T[]): T[] {
  return skipped.filter(({ file, test }) => !ALLOWED.some((allowed) => allowed.file === file && allowed.test === test));
}
