import assert from "node:assert/strict";
import { test } from "node:test";
import { declaredFeatures } from "./declared-features.ts";

const BOTH = ["InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"];
const cases = [
  { name: "what is done is declared", off: [], want: BOTH },
  { name: "not without its gate", off: ["RestartAllContainersOnContainerExits"], want: BOTH.slice(0, 1) },
  { name: "nothing without the gate of the list", off: ["NodeDeclaredFeatures"], want: [] },
];
for (const { name, off, want } of cases) {
  test(`declared features: ${name}`, () =>
    assert.deepEqual(
      declaredFeatures((gate) => !off.includes(gate)),
      want,
    ));
}

test("what is not done is never declared", () => {
  const all = declaredFeatures(() => true);
  assert.ok(!all.includes("ExtendWebSocketsToKubelet"));
  assert.ok(!all.includes("InPlacePodLevelResourcesVerticalScaling"));
});
