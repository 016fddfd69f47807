import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeCondition } from "../model/generated/types.ts";
import { conditionEvents, isNodeReady, keepTimes, nodeConditions } from "./conditions.ts";

const WELL = { memoryPressure: false, diskPressure: false, pidPressure: false, problems: [] };
const [THEN, NOW] = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"];

function ready(problems: readonly string[]): NodeCondition | undefined {
  return nodeConditions({ ...WELL, problems }, undefined, NOW).find(({ type }) => type === "Ready");
}

test("problems are the message of Ready: one as it is, several in brackets, as in Kubernetes", () => {
  const of = (...problems: string[]): unknown[] => [ready(problems)?.status, ready(problems)?.message];
  assert.deepEqual(of(), ["True", "kubelet is posting ready status"]);
  assert.deepEqual(of("a"), ["False", "a"]);
  assert.deepEqual(of("a", "b"), ["False", "[a, b]"]);
});

test("a condition keeps the time of its transition as long as its status stays", () => {
  const before = nodeConditions(WELL, undefined, THEN);
  const after = nodeConditions({ ...WELL, diskPressure: true }, before, NOW);
  const times = after.map(({ type, status, lastTransitionTime }) => `${type} ${status} ${lastTransitionTime}`);
  assert.deepEqual(times, [
    `MemoryPressure False ${THEN}`,
    `DiskPressure True ${NOW}`,
    `PIDPressure False ${THEN}`,
    `Ready True ${THEN}`,
  ]);
  assert.deepEqual(conditionEvents(before, after), ["NodeHasDiskPressure"]);
  assert.deepEqual(conditionEvents(after, before), ["NodeHasNoDiskPressure"]);
});

test("times of the server count where it has the same status, and only there", () => {
  const own = nodeConditions({ ...WELL, pidPressure: true }, undefined, NOW);
  const kept = keepTimes(own, nodeConditions(WELL, undefined, THEN));
  assert.deepEqual(
    kept.map(({ type, lastTransitionTime }) => `${type} ${lastTransitionTime}`),
    [`MemoryPressure ${THEN}`, `DiskPressure ${THEN}`, `PIDPressure ${NOW}`, `Ready ${THEN}`],
  );
  assert.deepEqual(keepTimes(own, undefined), own);
});

test("a node without conditions is not ready, nor is one whose Ready is not true", () => {
  assert.equal(isNodeReady(undefined), false);
  assert.equal(isNodeReady([]), false);
  assert.equal(isNodeReady(nodeConditions({ ...WELL, problems: ["x"] }, undefined, NOW)), false);
  assert.equal(isNodeReady(nodeConditions({ ...WELL, memoryPressure: true }, undefined, NOW)), true);
});
