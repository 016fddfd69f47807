import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeGates, knownGates } from "./feature-gates.ts";
import { GATES_WITHOUT_EFFECT } from "./table/gates.ts";

const cases: readonly { name: string; given: Record<string, boolean>; warns: boolean }[] = [
  { name: "a gate of the kubelet that is not honoured", given: { EventedPLEG: true }, warns: true },
  { name: "one that is set to its default", given: { EventedPLEG: false }, warns: false },
  { name: "one that is honoured", given: { ContainerCheckpoint: false }, warns: false },
  { name: "one of another component", given: { HPAScaleToZero: true }, warns: false },
  { name: "all of a stage", given: { AllAlpha: true }, warns: false },
];
for (const { name, given, warns } of cases) {
  test(`gates without effect: ${name} ${warns ? "is" : "is not"} warned of`, () => {
    const [gate = ""] = Object.keys(given);
    assert.deepEqual(judgeGates(given).warnings, warns ? [{ gate, message: "has no effect on this agent" }] : []);
  });
}

test("every gate without effect is a known one that can be switched", () => {
  for (const name of GATES_WITHOUT_EFFECT.trim().split(/\s+/))
    assert.equal(knownGates().get(name)?.isLocked, false, name);
});
