import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuntimeStatus } from "../adapters/runtime/port.ts";
import { FakeClock } from "../lib/clock.ts";
import { RuntimeHealth } from "./runtime-health.ts";

const ready: RuntimeStatus = {
  ready: true,
  networkReady: true,
  message: "",
  handlers: [],
  supplementalGroupsPolicy: true,
};

function site() {
  const clock = new FakeClock();
  return { clock, health: new RuntimeHealth(clock) };
}

test("a runtime that never answered has not been checked yet", () => {
  const { health } = site();
  health.record(undefined);
  assert.deepEqual(health.problems(), ["container runtime status check may not have completed yet"]);
});

test("a failed Status call is tolerated for 30 s", async () => {
  const { clock, health } = site();
  health.record(ready);
  await clock.advance(10_000);
  health.record(undefined);
  assert.deepEqual(health.problems(), []);
  await clock.advance(19_999);
  health.record(undefined);
  assert.deepEqual(health.problems(), []);
  await clock.advance(1);
  health.record(undefined);
  assert.deepEqual(health.problems(), ["container runtime is down"]);
  health.record(ready);
  assert.deepEqual(health.problems(), []);
});

test("a failed Status call keeps the handlers of the last answer", () => {
  const { health } = site();
  const handlers = [{ name: "", recursiveReadOnlyMounts: true, userNamespaces: true }];
  health.record({ ...ready, handlers });
  health.record(undefined);
  assert.deepEqual(health.status?.handlers, handlers);
});

test("a runtime that says it is not ready counts at once", async () => {
  const { clock, health } = site();
  health.record(ready);
  health.record({ ...ready, ready: false, message: "starting" });
  assert.deepEqual(health.problems(), ["container runtime not ready: starting"]);
  await clock.advance(30_000);
  assert.deepEqual(health.problems(), ["container runtime is down", "container runtime not ready: starting"]);
});

test("a network that is not ready counts at once and is remembered over a failed call", () => {
  const { health } = site();
  health.record({ ...ready, networkReady: false, message: "no CNI" });
  health.record(undefined);
  assert.deepEqual(health.problems(), ["container runtime network not ready: no CNI"]);
});
