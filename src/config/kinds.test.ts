import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { optionNames, optionOf } from "./agent-options.ts";
import { loadConfiguration } from "./load.ts";
import type { DecodeReport } from "./option.ts";

/** A report that says whether anything was wrong. */
function judge(): DecodeReport & { isFine: boolean } {
  const report = {
    isFine: true,
    problem: (): void => {
      report.isFine = false;
    },
    unknownKey: (): void => undefined,
  };
  return report;
}

const words = fc.oneof(
  fc.string(),
  fc.constantFrom("1m30s", "-5m", "1d", "0", "1e400", "10Mi", "1.5", "true", "T", "0x10", "010", "-1", "a=b,c=d"),
  fc.constantFrom("memory.available<1Gi", "0:memory=1Gi;1:memory=2Gi", "a=b:NoSchedule", "k:v,k:w", "A=true", "x=4"),
  fc.constantFrom("__proto__=1", "constructor=true", "=", ",,,", "9".repeat(300), "٣", "1h1ns"),
);

for (const name of optionNames) {
  const { kind, flag, field } = optionOf(name);
  if (flag !== undefined) {
    test(`--${flag}: what is parsed and shown is parsed to the same, and nothing else is thrown but an Error`, () => {
      fc.assert(
        fc.property(words, (word) => {
          let value: unknown;
          try {
            value = kind.parse(word, undefined);
          } catch (error) {
            assert.equal(Object.getPrototypeOf(error), Error.prototype, String(error));
            return;
          }
          if (name === "staticPodURLHeader") return; // Secret: only its names are shown.
          const shown = kind.show(value);
          assert.deepEqual(kind.parse(shown, undefined), value, JSON.stringify(shown));
        }),
        { numRuns: 60 },
      );
    });
  }
  if (field !== undefined) {
    test(`${field}: what a file's value is read as is written and read as the same, and nothing throws`, () => {
      const given = fc.oneof(fc.jsonValue(), words, fc.array(words), fc.dictionary(fc.string(), words), fc.integer());
      fc.assert(
        fc.property(given, (raw) => {
          if (raw === null) return;
          const report = judge();
          const value = kind.decode(raw, report);
          assert.ok(value !== undefined || !report.isFine, "undefined without a problem");
          if (!report.isFine || value === undefined) return;
          const written: unknown = JSON.parse(JSON.stringify(kind.encode(value)) ?? "null");
          if (written === null) return; // Left out: an empty map.
          assert.deepEqual(kind.decode(written, judge()), value);
        }),
        { numRuns: 60 },
      );
    });
  }
}

for (const field of ["logging.flushFrequency", "memoryThrottlingFactor"]) {
  const name = optionNames.find((each) => optionOf(each).field === field);
  test(`${field}: a zero with a sign is a zero`, () => {
    assert.ok(name);
    const { decode, encode } = optionOf(name).kind;
    const value = decode(-0, judge());
    assert.ok(value !== undefined);
    assert.ok(Object.is(encode(value), 0));
  });
}

test("a taint with an empty value has none", () => {
  const name = optionNames.find((each) => optionOf(each).flag === "register-with-taints");
  assert.ok(name);
  assert.deepEqual(optionOf(name).kind.parse("a=:NoSchedule", undefined), [{ key: "a", effect: "NoSchedule" }]);
});

test("no document makes the loader throw, and what it yields is complete", () => {
  const fields = optionNames.flatMap((name) => optionOf(name).field ?? []);
  const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
  const body = fc.dictionary(
    fc.oneof(fc.constantFrom(...fields, "authentication", "logging"), fc.string()),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(body, body, (file, dropIn) => {
      const document = (value: object) => ({
        file: "f",
        directory: "/",
        value: { ...value, ...head },
        line: 1,
        warnings: [],
      });
      const flags = { values: {}, given: new Set<string>(), problems: [] };
      const { values } = loadConfiguration({ flags, file: document(file), dropIns: [document(dropIn)] });
      assert.deepEqual(Object.keys(values), [...optionNames]);
    }),
    { numRuns: 300 },
  );
});
