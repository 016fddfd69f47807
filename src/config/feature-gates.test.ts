import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
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

test("no gate that the source asks for is said to have no effect", () => {
  const src = fileURLToPath(new URL("..", import.meta.url));
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /(?<!\.test)\.ts$/.test(file));
  const asked = files.flatMap((file) =>
    [...readFileSync(join(src, file), "utf8").matchAll(/isGateOn\(\s*"(\w+)"/g)].map(([, name]) => name ?? ""),
  );
  assert.ok(asked.includes("MemoryQoS"));
  assert.deepEqual(
    asked.filter((name) => knownGates().get(name)?.isHonoured !== true),
    [],
  );
});

test("every gate without effect is a known one that can be switched", () => {
  for (const name of GATES_WITHOUT_EFFECT.trim().split(/\s+/))
    assert.equal(knownGates().get(name)?.isLocked, false, name);
});
