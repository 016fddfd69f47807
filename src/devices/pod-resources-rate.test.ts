import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { PodResourcesRate } from "./pod-resources-rate.ts";

/** Calls that are answered in this time of those that come each millisecond. */
async function answered(devices: number, forMs: number): Promise<number> {
  const clock = new FakeClock();
  const rate = new PodResourcesRate(clock);
  let count = 0;
  for (let at = 0; at < forMs; at++) {
    if (rate.mayCall()) {
      count++;
      rate.answered(devices);
    }
    await clock.advance(1);
  }
  return count;
}

const cases = [
  { name: "of usual answers 100 a second after a burst of 10, as in Kubernetes", devices: 100, least: 109, most: 110 },
  { name: "of answers with 80,000 devices four, then every 0.6 s one", devices: 80_000, least: 4, most: 6 },
  { name: "of answers with 1,000,000 devices one", devices: 1_000_000, least: 1, most: 1 },
];
for (const { name, devices, least, most } of cases) {
  test(`in a second, ${name}`, async () => {
    const count = await answered(devices, 1000);
    assert.ok(count >= least && count <= most, `${count} calls`);
  });
}
