import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHost, type HostFacts, swapsIn } from "./host-checks.ts";

type Options = Parameters<typeof checkHost>[0];
const FINE: Options = { failCgroupV1: false, swapBehavior: "", singleProcessOOMKill: undefined, failSwapOn: true };

const rows: { name: string; options: Partial<Options>; facts: Partial<HostFacts>; given?: boolean; says?: RegExp }[] = [
  { name: "cgroup v1 that is allowed", options: {}, facts: { cgroupVersion: 1 } },
  {
    name: "cgroup v1 that somebody refused",
    options: { failCgroupV1: true },
    facts: { cgroupVersion: 1 },
    given: true,
    says: /failCgroupV1: true, but/,
  },
  { name: "cgroup v2", options: { failCgroupV1: true }, facts: { cgroupVersion: 2 }, given: true },
  { name: "no cgroups at all", options: { failCgroupV1: true }, facts: { cgroupVersion: undefined }, given: true },
  {
    name: "swap for pods on v1",
    options: { swapBehavior: "LimitedSwap" },
    facts: { cgroupVersion: 1 },
    says: /LimitedSwap needs cgroup v2/,
  },
  { name: "swap for pods on v2", options: { swapBehavior: "LimitedSwap" }, facts: { cgroupVersion: 2 } },
  {
    name: "ending whole containers on v1",
    options: { singleProcessOOMKill: false },
    facts: { cgroupVersion: 1 },
    says: /singleProcessOOMKill: false needs cgroup v2/,
  },
  { name: "ending one process on v1", options: { singleProcessOOMKill: true }, facts: { cgroupVersion: 1 } },
  { name: "swap", options: {}, facts: { swaps: ["/swapfile"] }, says: /swap is on: \/swapfile; turn it off/ },
  { name: "swap that is allowed", options: { failSwapOn: false }, facts: { swaps: ["/swapfile"] } },
];
for (const { name, options, facts, given = false, says } of rows) {
  test(`${name} ${says === undefined ? "is fine" : "is refused"}`, () => {
    const verdict = checkHost({ ...FINE, ...options }, { cgroupVersion: 2, swaps: [], ...facts }, () => given);
    assert.equal(verdict.refusals.length, says === undefined ? 0 : 1, verdict.refusals.join("\n"));
    if (says !== undefined) assert.match(verdict.refusals.join("\n"), says);
  });
}

test("cgroup v1 that the default refuses is served, with a word", () => {
  const verdict = checkHost({ ...FINE, failCgroupV1: true }, { cgroupVersion: 1, swaps: [] }, () => false);
  assert.deepEqual(verdict.refusals, []);
  assert.match(verdict.warnings.join(), /cgroup v1/);
});

test("the names of swaps", () => {
  const head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
  assert.deepEqual(swapsIn(head), []);
  assert.deepEqual(swapsIn(`${head}/swapfile   file\t\t8\t0\t-2\n/dev/sda2 partition 9 0 -3\n`), [
    "/swapfile",
    "/dev/sda2",
  ]);
});
