import assert from "node:assert/strict";
import { test } from "node:test";
import { declaredFeatures } from "./declared-features.ts";

const ALL = [
  "InPlacePodLevelResourcesVerticalScaling",
  "InPlacePodVerticalScalingInitContainers",
  "RestartAllContainersOnContainerExits",
];
const cases = [
  { name: "what is done is declared", off: [], want: ALL },
  { name: "not without its gate", off: ["RestartAllContainersOnContainerExits"], want: ALL.slice(0, 2) },
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
});
