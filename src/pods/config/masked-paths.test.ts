import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cpuNumbers, thermalPaths } from "./masked-paths.ts";

describe("a kernel's list of CPUs", () => {
  const cases: [string, number[]][] = [
    ["0\n", [0]],
    ["0-3\n", [0, 1, 2, 3]],
    ["0-1,4,6-7", [0, 1, 4, 6, 7]],
    ["", []],
    ["\n", []],
    ["none", []],
    ["3-1", []],
    ["0-99999999999", []],
  ];
  for (const [text, want] of cases) test(JSON.stringify(text), () => assert.deepEqual(cpuNumbers(text), want));
});

describe("the throttling counters", () => {
  const files = new Map([
    ["/sys/devices/system/cpu/possible", "0-2\n"],
    ["/sys/devices/system/cpu/cpu0/thermal_throttle", ""],
    ["/sys/devices/system/cpu/cpu2/thermal_throttle", ""],
    ["/sys/devices/system/cpu/cpu9/thermal_throttle", ""],
  ]);
  const machine = { readSmall: (path: string) => files.get(path) ?? "", exists: (path: string) => files.has(path) };

  test("of every possible CPU that has them", () => {
    assert.deepEqual(thermalPaths(machine), [
      "/sys/devices/system/cpu/cpu0/thermal_throttle",
      "/sys/devices/system/cpu/cpu2/thermal_throttle",
    ]);
  });

  test("none on a machine that does not tell its CPUs", () => {
    assert.deepEqual(thermalPaths({ readSmall: () => "", exists: () => true }), []);
  });
});
