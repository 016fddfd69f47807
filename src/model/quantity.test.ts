import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  addAmounts,
  amountOf,
  amountOfMilli,
  canonicalQuantity,
  compareAmounts,
  formatQuantity,
  isZero,
  milliValue,
  parseQuantity,
  QuantityError,
  roundUpToMilli,
  subtractAmounts,
  tryParseQuantity,
  wholeValue,
} from "./quantity.ts";

const canonical = [
  ["0", "0"],
  ["-0", "0"],
  ["0Mi", "0"],
  ["1", "1"],
  ["+1", "1"],
  ["1.", "1"],
  [".5", "500m"],
  ["1.5", "1500m"],
  ["-1.5", "-1500m"],
  ["1024", "1024"],
  ["1000", "1k"],
  ["1000000", "1M"],
  ["1500000", "1500k"],
  ["100m", "100m"],
  ["1000m", "1"],
  ["0.1m", "100u"],
  ["1n", "1n"],
  ["0.1n", "1n"],
  ["-0.1n", "-1n"],
  ["1.0000000001", "1000000001n"],
  ["1Ki", "1Ki"],
  ["1.5Gi", "1536Mi"],
  ["1024Mi", "1Gi"],
  ["1023Ki", "1023Ki"],
  ["0.5Ki", "512"],
  ["0.0001Ki", "102400u"],
  ["1.0005Ki", "1024512m"],
  ["8Ei", "9223372036854775807"],
  ["100Ei", "9223372036854775807"],
  ["9E", "9E"],
  ["12E", "12E"],
  ["1e3", "1e3"],
  ["1E3", "1e3"],
  ["12e4", "120e3"],
  ["1e-3", "1e-3"],
  ["1e0", "1"],
  ["1e+21", "1e21"],
] as const;
for (const [text, want] of canonical) {
  test(`${text} is written ${want}`, () => assert.equal(canonicalQuantity(text), want));
}

for (const text of [
  "",
  " 1",
  "1 ",
  "abc",
  "1K",
  "1ki",
  "1KB",
  "--1",
  "1e",
  "1..2",
  ".",
  "+",
  "m",
  "1mm",
  "0x10",
  "1e999",
  "٣",
]) {
  test(`${JSON.stringify(text)} is refused`, () => {
    assert.throws(() => parseQuantity(text), QuantityError);
    assert.equal(tryParseQuantity(text), undefined);
  });
}

test("a junk text of a megabyte is refused quickly and shortened in the message", () => {
  assert.throws(
    () => parseQuantity("9".repeat(1_000_000)),
    (error: Error) => error.message.length < 150,
  );
});

const values = [
  ["100m", 1, 100],
  ["1", 1, 1000],
  ["1500m", 2, 1500],
  ["1u", 1, 1],
  ["0", 0, 0],
  ["128Mi", 134217728, 134217728000],
  ["-100m", -1, -100],
] as const;
for (const [text, whole, milli] of values) {
  test(`${text} counts ${whole} whole, ${milli} milli`, () => {
    assert.equal(wholeValue(parseQuantity(text)), whole);
    assert.equal(milliValue(parseQuantity(text)), milli);
  });
}

test("what a number cannot hold exactly is cut, never wrapped", () => {
  assert.equal(wholeValue(parseQuantity("9E")), Number.MAX_SAFE_INTEGER);
});

test("sums are exact to the nano", () => {
  const sum = addAmounts(parseQuantity("0.1"), parseQuantity("0.2"));
  assert.equal(formatQuantity(sum), "300m");
  assert.equal(formatQuantity(addAmounts(parseQuantity("1n"), parseQuantity("1G"))), "1000000000000000001n");
  assert.ok(isZero(subtractAmounts(sum, parseQuantity("300m"))));
});

test("a sum keeps the family of the first that is not zero", () => {
  assert.equal(formatQuantity(addAmounts(parseQuantity("0"), parseQuantity("1Gi"))), "1Gi");
  assert.equal(formatQuantity(addAmounts(parseQuantity("1Gi"), parseQuantity("1024"))), "1048577Ki");
});

test("rounding to milli goes up", () => {
  assert.equal(formatQuantity(roundUpToMilli(parseQuantity("1n"))), "1m");
  assert.equal(formatQuantity(roundUpToMilli(parseQuantity("1500m"))), "1500m");
});

test("amounts made of numbers", () => {
  assert.equal(formatQuantity(amountOf(2048, "binary")), "2Ki");
  assert.equal(formatQuantity(amountOfMilli(1500)), "1500m");
});

test("any amount survives writing and reading", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
      fc.constantFrom("decimal" as const, "exponent" as const),
      (nano, family) => parseQuantity(formatQuantity({ nano, family })).nano === nano,
    ),
  );
});

test("whole binary amounts survive writing and reading", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (value) => {
      const text = formatQuantity(amountOf(value, "binary"));
      // Without a suffix the family is lost, as in Kubernetes; the amount never is.
      const isStable = !text.endsWith("i") || canonicalQuantity(text) === text;
      return isStable && parseQuantity(text).nano === value * 1_000_000_000n;
    }),
  );
});

test("comparing agrees with the difference", () => {
  const amount = fc
    .bigInt({ min: -(10n ** 20n), max: 10n ** 20n })
    .map((nano) => ({ nano, family: "decimal" as const }));
  fc.assert(
    fc.property(amount, amount, (a, b) => {
      const { nano } = subtractAmounts(a, b);
      return compareAmounts(a, b) === (nano === 0n ? 0 : nano < 0n ? -1 : 1);
    }),
  );
});
