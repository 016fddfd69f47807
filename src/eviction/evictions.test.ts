import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { Evictions, type EvictionsDeps } from "./evictions.ts";

const { signal } = new AbortController();
const REQUEST = { message: "m", annotations: {}, graceSeconds: 20, signal: "s", isForDisk: true };

function made(deps: Partial<EvictionsDeps>) {
  const clock = new FakeClock();
  const evictions = new Evictions({
    clock,
    log: silent,
    candidates: () => [],
    stop: () => undefined,
    isFinished: () => true,
    discard: async () => undefined,
    event: () => undefined,
    counted: () => undefined,
    ...deps,
  });
  return { clock, evictions };
}

async function after(clock: FakeClock, ms: number, eviction: Promise<void>): Promise<boolean> {
  let isOver = false;
  void eviction.then(() => {
    isOver = true;
  });
  await clock.advance(ms);
  return isOver;
}

test("a pod that does not end is waited for during its grace period and 30 s more", async () => {
  const { clock, evictions } = made({ isFinished: () => false });
  const eviction = evictions.evict(pod("p").container("c").build(), REQUEST, { signal });
  assert.equal(await after(clock, 49_000, eviction), false);
  assert.equal(await after(clock, 1100, eviction), true);
});

test("a runtime that does not remove its containers is waited for 30 s", async () => {
  const { clock, evictions } = made({ discard: () => new Promise(() => undefined) });
  const eviction = evictions.evict(pod("p").container("c").build(), REQUEST, { signal });
  assert.equal(await after(clock, 29_000, eviction), false);
  assert.equal(await after(clock, 1100, eviction), true);
});

test("the last 20 evictions are kept", async () => {
  const { evictions } = made({});
  for (let at = 0; at < 25; at++) await evictions.evict(pod(`p${at}`).container("c").build(), REQUEST, { signal });
  assert.deepEqual([evictions.recent.length, evictions.recent[0]?.pod.name], [20, "p5"]);
});
