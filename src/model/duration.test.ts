import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DurationError, formatDuration, formatDurationNanos, parseDuration, parseDurationNanos } from "./duration.ts";

const cases = [
  ["0", 0, "0s"],
  ["0s", 0, "0s"],
  ["20s", 20_000, "20s"],
  ["1m", 60_000, "1m0s"],
  ["4h", 14_400_000, "4h0m0s"],
  ["1.5h", 5_400_000, "1h30m0s"],
  ["2h45m", 9_900_000, "2h45m0s"],
  ["100ms", 100, "100ms"],
  ["1.5s", 1500, "1.5s"],
  ["1m0.5s", 60_500, "1m0.5s"],
  ["250us", 0.25, "250µs"],
  ["250µs", 0.25, "250µs"],
  ["1500ns", 0.0015, "1.5µs"],
  [".5s", 500, "500ms"],
  ["1.s", 1000, "1s"],
  ["-2ms", -2, "-2ms"],
  ["+3s", 3000, "3s"],
] as const;
for (const [text, ms, canonical] of cases) {
  test(`${text} is ${ms} ms, written ${canonical}`, () => {
    assert.equal(parseDuration(text), ms);
    assert.equal(formatDuration(ms), canonical);
  });
}

for (const text of ["", "-", "1", "10", "s", ".s", "1 s", "1d", "1s ", "1h-2m", "abc", "9999999999h", "5e3s"]) {
  test(`${JSON.stringify(text)} is refused`, () => assert.throws(() => parseDuration(text), DurationError));
}

test("any number of nanoseconds survives writing and reading", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (nanos) => {
      return parseDurationNanos(formatDurationNanos(nanos)) === nanos;
    }),
  );
});
