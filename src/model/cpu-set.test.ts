import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatCpuSet, intersection, isSameSet, parseCpuSet, sortedCpus, unionOf, without } from "./cpu-set.ts";

test("CPUs are listed as the kernel does, in the shortest form", () => {
  for (const [text, want = text] of [["", ""], ["0"], ["0-3,8"], ["7,0,1", "0-1,7"], ["0-1,1-2", "0-2"]]) {
    assert.equal(formatCpuSet(parseCpuSet(text ?? "")), want);
  }
  for (const text of ["-", "3-1", "a", "0,", " 0", "0-99999", "0x1"])
    assert.throws(() => parseCpuSet(text), /range of CPUs/);
});

test("what was formatted is parsed to the same CPUs", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(300)), (cpus) => {
      assert.deepEqual(sortedCpus(parseCpuSet(formatCpuSet(new Set(cpus)))), sortedCpus(cpus));
    }),
  );
});

test("sets are combined without changing them", () => {
  const [a, b] = [parseCpuSet("0-3"), parseCpuSet("2-5")];
  const all = [unionOf(a, b), without(a, b), intersection(a, b), a].map(formatCpuSet);
  assert.deepEqual(all, ["0-5", "0-1", "2-3", "0-3"]);
  assert.deepEqual([isSameSet(a, parseCpuSet("0,1,2,3")), isSameSet(a, b)], [true, false]);
});
