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
    ending: () => [],
    stop: () => undefined,
    isFinished: () => true,
    discard: async () => undefined,
    event: () => undefined,
    counted: () => undefined,
    ...deps,
  });
  return { clock, evictions };
}

async function after(clock: FakeClock, ms: number, eviction: Promise<unknown>): Promise<boolean> {
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

test("pods that an earlier agent began to evict are waited for, each of them once", async () => {
  const ended = new Set<string>();
  const all = ["a", "b"].map((uid) => ({ uid, graceSeconds: 5 }));
  const { clock, evictions } = made({
    ending: () => all.filter(({ uid }) => !ended.has(uid)),
    isFinished: (uid) => ended.has(uid),
  });
  const waited = evictions.endInherited({ signal });
  ended.add("a");
  assert.equal(await after(clock, 34_000, waited), false);
  assert.equal(await after(clock, 1100, waited), true);
  assert.equal(await waited, true);
  assert.equal(await evictions.endInherited({ signal }), false, "the one that does not end blocks nothing for ever");
});

test("a pod that ended is waited for again if it comes back under its UID and is ended anew", async () => {
  let isEnding = true;
  const { clock, evictions } = made({
    ending: () => (isEnding ? [{ uid: "a", graceSeconds: 0 }] : []),
    isFinished: () => !isEnding,
  });
  const first = evictions.endInherited({ signal });
  isEnding = false;
  await clock.advance(1000);
  assert.equal(await first, true);
  assert.equal(await evictions.endInherited({ signal }), false);
  isEnding = true;
  const second = evictions.endInherited({ signal });
  isEnding = false;
  await clock.advance(1000);
  assert.equal(await second, true);
});

test("a pod that does not end, whatever it fails with, is no candidate again until it has ended", async () => {
  const overdue = pod("p").container("c").build();
  let hasEnded = false;
  const { clock, evictions } = made({ candidates: () => [overdue], isFinished: () => hasEnded });
  const eviction = evictions.evict(overdue, REQUEST, { signal });
  assert.equal(await after(clock, 50_100, eviction), true);
  assert.equal(await evictions.endInherited({ signal }), false);
  assert.deepEqual(evictions.candidates(), []);
  hasEnded = true;
  assert.deepEqual(evictions.candidates(), [overdue], "a static pod may come back under its UID");
});

test("a pod that this agent evicted is not waited for a second time", async () => {
  const ending: { uid: string; graceSeconds: number }[] = [];
  const { evictions } = made({ ending: () => ending });
  await evictions.evict(pod("p").container("c").build(), REQUEST, { signal });
  ending.push({ uid: "uid-of-p", graceSeconds: 1 });
  assert.equal(await evictions.endInherited({ signal }), false);
});

test("what the runtime has of a pod that does not end is not removed", async () => {
  const discarded: string[] = [];
  const { clock, evictions } = made({ isFinished: () => false, discard: async (uid) => void discarded.push(uid) });
  const eviction = evictions.evict(pod("p").container("c").build(), REQUEST, { signal });
  assert.equal(await after(clock, 60_000, eviction), true);
  assert.deepEqual(discarded, []);
});

test("an agent that stops does not wait for a runtime that removes containers", async () => {
  const stop = new AbortController();
  const { clock, evictions } = made({ discard: () => new Promise(() => undefined) });
  const eviction = evictions.evict(pod("p").container("c").build(), REQUEST, { signal: stop.signal });
  await clock.advance(100);
  stop.abort(new Error("stopped"));
  await assert.rejects(eviction, /stopped/);
});

test("only a pod that is being evicted can be hurried", async () => {
  const stopped: string[] = [];
  const { clock, evictions } = made({
    isFinished: () => stopped.length > 1,
    stop: (uid, { message }, grace) => void stopped.push(`${uid} ${message} ${grace}`),
  });
  evictions.hurry({ uid: "uid-of-p", message: "m" }, 1);
  assert.deepEqual(stopped, []);
  const eviction = evictions.evict(pod("p").container("c").build(), REQUEST, { signal });
  evictions.hurry({ uid: "uid-of-p", message: "m" }, 1);
  assert.equal(await after(clock, 100, eviction), true);
  assert.deepEqual(stopped, ["uid-of-p m 20", "uid-of-p m 1"]);
  evictions.hurry({ uid: "uid-of-p", message: "m" }, 1);
  assert.equal(stopped.length, 2);
});
