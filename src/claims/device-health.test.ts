import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import type { ClaimDevice } from "../model/claim-device.ts";
import { DeviceHealthBook } from "./device-health.ts";
import type { DeviceReport } from "./drivers.ts";
import { claimStatuses } from "./resource-status.ts";

const device = (name: string, more: Partial<ClaimDevice> = {}): ClaimDevice => ({
  driver: "gpu",
  pool: "p",
  device: name,
  requests: [],
  cdiDevices: [`example.com/gpu=${name}`],
  ...more,
});
const report = (name: string, more: Partial<DeviceReport> = {}): DeviceReport => ({
  pool: "p",
  device: name,
  health: "Healthy",
  validMs: undefined,
  message: "",
  ...more,
});

function book(): { clock: FakeClock; health: DeviceHealthBook; changed: string[] } {
  const clock = new FakeClock();
  const changed: string[] = [];
  const health = new DeviceHealthBook(clock, (_driver, isChanged) => {
    changed.push(...["a", "b"].filter((name) => isChanged(device(name))));
  });
  return { clock, health, changed };
}

test("only what changed is told, a repeated report is not", () => {
  const { health, changed } = book();
  health.update("gpu", [report("a"), report("b")]);
  health.update("gpu", [report("a"), report("b", { health: "Unhealthy", message: "hot" })]);
  assert.deepEqual(changed, ["a", "b", "b"]);
  health.update("gpu", [report("b", { health: "Unhealthy", message: "very hot" })]);
  assert.deepEqual(changed, ["a", "b", "b", "b"]);
  health.update("gpu", [report("b", { health: "Unhealthy", message: "hot" })]);
  assert.deepEqual([health.healthOf(device("a")).health, health.healthOf(device("b")).message], ["Healthy", "hot"]);
  assert.equal(health.healthOf(device("c")).health, "Unknown");
});

test("without another report health is unknown after 30 s, or after the time that the driver names", async () => {
  const { clock, health, changed } = book();
  health.update("gpu", [report("a"), report("b", { validMs: 60_000 })]);
  assert.equal(clock.nextIn, 30_000, "nothing is looked at before");
  await clock.advance(29_999);
  assert.equal(health.healthOf(device("a")).health, "Healthy");
  await clock.advance(1);
  assert.equal(health.healthOf(device("a")).health, "Unknown");
  assert.deepEqual(changed, ["a", "b", "a"], "which is told at once");
  await clock.advance(30_000);
  assert.deepEqual(changed, ["a", "b", "a", "b"]);
  assert.equal(clock.waiting, 0);
});

test("a driver that reports again and again costs one timer", () => {
  const { clock, health } = book();
  for (let times = 0; times < 3; times++) health.update("gpu", [report("a")]);
  assert.equal(clock.waiting, 1);
});

test("devices of a driver that has not come back since the agent started have no health for 30 s, then unknown", async () => {
  const { clock, health } = book();
  let isSettled = false;
  const settled = health.settle({ signal: new AbortController().signal }).finally(() => (isSettled = true));
  assert.equal(health.healthOf(device("a")).health, undefined);
  assert.deepEqual(
    claimStatuses(
      { resources: { claims: [{ name: "gpu" }] } },
      { devices: () => [device("a")], healthOf: (of) => health.healthOf(of), hasMessage: true },
    ),
    [{ name: "claim:gpu", resources: [{ resourceID: device("a").cdiDevices[0] ?? "" }] }],
  );
  await clock.advance(29_999);
  assert.equal(isSettled, false);
  await clock.advance(1);
  const isHeard = await settled;
  assert.deepEqual([health.healthOf(device("a")).health, isHeard("gpu")], ["Unknown", false]);
  const another = book();
  another.health.clear("gpu");
  assert.equal(another.health.healthOf(device("a")).health, "Unknown");
});

test("devices of a driver that is gone have unknown health", () => {
  const { health, changed } = book();
  health.update("gpu", [report("a")]);
  health.clear("gpu");
  health.clear("gpu");
  assert.deepEqual(changed, ["a", "a"]);
  assert.equal(health.healthOf(device("a")).health, "Unknown");
});

test("a container's status names each claim and request with the health of its devices", () => {
  const devices = [
    device("a", { requests: ["first"] }),
    device("b", { requests: ["second/big"], cdiDevices: [] }),
    device("a2", { requests: ["first"], cdiDevices: ["example.com/gpu=a"] }),
  ];
  const facts = {
    devices: (claim: string) => (claim === "gpu" ? devices : undefined),
    healthOf: ({ device: name }: ClaimDevice) => ({ health: "Unhealthy" as const, message: `${name} is hot` }),
    hasMessage: true,
  };
  const claims = [{ name: "gpu", request: "first" }, { name: "gpu", request: "second" }, { name: "other" }];
  assert.deepEqual(claimStatuses({ resources: { claims } }, facts), [
    {
      name: "claim:gpu/first",
      resources: [{ resourceID: "example.com/gpu=a", health: "Unhealthy", message: "a is hot" }],
    },
    { name: "claim:gpu/second", resources: [{ resourceID: "gpu/p/b", health: "Unhealthy", message: "b is hot" }] },
  ]);
  const whole = claimStatuses({ resources: { claims: [{ name: "gpu" }] } }, { ...facts, hasMessage: false });
  assert.deepEqual(
    whole[0]?.resources?.map(({ resourceID }) => resourceID),
    ["example.com/gpu=a", "gpu/p/b"],
  );
  assert.deepEqual(claimStatuses({}, facts), []);
});

test("a driver that names ever new devices fills no memory: the oldest reports are forgotten", () => {
  const { health, changed } = book();
  const validMs = Number.MAX_SAFE_INTEGER;
  health.update("gpu", [report("a", { validMs }), report("b", { validMs })]);
  const others = Array.from({ length: 16_383 }, (_, at) => report(`other-${at}`, { validMs }));
  // Reported once more, the first device is not the oldest any more.
  health.update("gpu", [report("a", { validMs }), ...others]);
  assert.deepEqual([health.healthOf(device("a")).health, health.healthOf(device("b")).health], ["Healthy", "Unknown"]);
  assert.deepEqual(changed, ["a", "b", "b"]);
});
