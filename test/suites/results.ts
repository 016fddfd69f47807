import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { skipsNotAllowed } from "../allowed-skips.ts";

/** The environment variable with the file to which results-reporter.mjs writes. */
export const RESULTS = "KUBELET_TEST_RESULTS";

/** A suite says with this exit code that it cannot run here; the last line that it wrote is the reason. */
export const SKIPPED = 77;

/** Flags of node under which a suite shows its tests and tells their results. */
export const REPORTER_FLAGS: readonly string[] = [
  "--test-reporter=spec",
  "--test-reporter-destination=stdout",
  `--test-reporter=${pathToFileURL(join(import.meta.dirname, "results-reporter.mjs")).href}`,
  "--test-reporter-destination=stderr",
];

export interface TestResult {
  readonly test: string;
  readonly passed: boolean;
  /** The reason, for a test that was left out. */
  readonly skipped?: string;
}

export interface Outcome {
  readonly result: "passed" | "failed" | "skipped";
  readonly reason: string;
  /** How many tests ran. */
  readonly tests: number;
  /** Tests that were left out, each with the reason. */
  readonly skips: readonly { readonly test: string; readonly reason: string; readonly isAllowed: boolean }[];
}

export interface Ended {
  readonly file: string;
  readonly code: number | string;
  readonly output: string;
  readonly results: readonly TestResult[];
  /** What it left on the machine. */
  readonly left: readonly string[];
}

/** Reads what the reporter wrote; a suite that ended before its first test wrote nothing. */
export function readResults(file: string): TestResult[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as TestResult); // written by our reporter
}

/** What the end of a suite means. */
export function judge({ file, code, output, results, left }: Ended, isStrict: boolean): Outcome {
  const tests = results.filter(({ skipped }) => skipped === undefined).length;
  const found = results.flatMap(({ test, skipped }) =>
    skipped === undefined ? [] : [{ file, test, reason: skipped }],
  );
  const forbidden = new Set(skipsNotAllowed(found));
  const skips = found.map((skip) => ({ test: skip.test, reason: skip.reason, isAllowed: !forbidden.has(skip) }));
  const outcome = (result: Outcome["result"], reason: string): Outcome => ({ result, reason, tests, skips });
  if (code !== 0 && code !== SKIPPED) return outcome("failed", typeof code === "number" ? `exit code ${code}` : code);
  if (left.length > 0) return outcome("failed", "left something behind");
  if (code === SKIPPED) {
    return outcome(isStrict ? "failed" : "skipped", `cannot run here: ${output.trimEnd().split("\n").at(-1)}`);
  }
  if (isStrict && forbidden.size > 0) return outcome("failed", "skipped tests that are not in test/allowed-skips.ts");
  if (tests > 0) return outcome("passed", "");
  // Every test may be left out where the list says so, as on a kernel that has nothing of what the suite tests.
  if (skips.length > 0) return outcome("skipped", [...new Set(skips.map(({ reason }) => reason))].join("; "));
  return outcome("failed", "no test was run");
}
