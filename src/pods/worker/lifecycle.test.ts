import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { advance, type Lifecycle, mergeStop, nextStep, ORPHANED, type StopIntent, WANTED } from "./lifecycle.ts";

const evicted = { reason: "Evicted", message: "low on memory" };
const late = { reason: "DeadlineExceeded", message: "too long" };

const merges: { name: string; before: StopIntent | undefined; asked: StopIntent; want: StopIntent }[] = [
  { name: "the first intent counts", before: undefined, asked: { graceSeconds: 30 }, want: { graceSeconds: 30 } },
  {
    name: "a shorter grace period counts",
    before: { graceSeconds: 30 },
    asked: { graceSeconds: 5 },
    want: { graceSeconds: 5 },
  },
  {
    name: "a longer grace period does not count",
    before: { graceSeconds: 5 },
    asked: { graceSeconds: 600 },
    want: { graceSeconds: 5 },
  },
  {
    name: "zero is one second",
    before: { graceSeconds: 30 },
    asked: { graceSeconds: 0 },
    want: { graceSeconds: 1 },
  },
  {
    name: "a failure is not lost to a later intent without one",
    before: { graceSeconds: 30, failure: evicted },
    asked: { graceSeconds: 5 },
    want: { graceSeconds: 5, failure: evicted },
  },
  {
    name: "a failure joins an intent without one",
    before: { graceSeconds: 5 },
    asked: { graceSeconds: 30, failure: evicted },
    want: { graceSeconds: 5, failure: evicted },
  },
  {
    name: "the earlier failure stays",
    before: { graceSeconds: 30, failure: evicted },
    asked: { graceSeconds: 10, failure: late },
    want: { graceSeconds: 10, failure: evicted },
  },
];

describe("mergeStop", () => {
  for (const c of merges) test(c.name, () => assert.deepEqual(mergeStop(c.before, c.asked), c.want));

  test("in whatever order intents arrive, the grace period is the shortest", () => {
    const asked = [30, 5, 600, 12].map((graceSeconds) => ({ graceSeconds }));
    for (const order of [asked, asked.toReversed(), asked.toSorted((a, b) => a.graceSeconds - b.graceSeconds)]) {
      const merged = order.reduce<StopIntent | undefined>((before, one) => mergeStop(before, one), undefined);
      assert.equal(merged?.graceSeconds, 5);
    }
  });
});

describe("lifecycle", () => {
  const stopping = advance(advance(WANTED, { on: "stopRequested", stop: { graceSeconds: 30 } }), {
    on: "entered",
    phase: "stopping",
  });
  const stopped = advance(stopping, { on: "entered", phase: "stopped" });

  const steps: { name: string; life: Lifecycle; want: string }[] = [
    { name: "a wanted pod is synced", life: WANTED, want: "sync" },
    { name: "an orphaned pod is stopped at once", life: ORPHANED, want: "enterStopping" },
    { name: "stopping stops", life: stopping, want: "stop" },
    { name: "a stopped pod that its source still has rests", life: stopped, want: "rest" },
    {
      name: "a stopped pod that its source no longer has is removed",
      life: advance(stopped, { on: "removed", stop: { graceSeconds: 30 } }),
      want: "remove",
    },
    { name: "gone is the end", life: advance(stopped, { on: "entered", phase: "gone" }), want: "end" },
  ];
  for (const c of steps) test(c.name, () => assert.equal(nextStep(c.life), c.want));

  test("a killed pod stays killed, and is still stopping until it is cleaned up", () => {
    const killed = advance(stopping, { on: "killed" });
    assert.deepEqual([killed.isKilled, killed.phase, nextStep(killed)], [true, "stopping", "stop"]);
    const removed = advance(killed, { on: "removed", stop: { graceSeconds: 1 } });
    assert.equal(advance(removed, { on: "entered", phase: "stopped" }).isKilled, true);
  });

  test("a phase never goes back", () => {
    for (const phase of ["syncing", "stopping", "stopped"] as const) {
      assert.equal(advance(stopped, { on: "entered", phase }).phase, "stopped");
    }
  });

  test("a stop request does not leave the phase; entering it does", () => {
    const asked = advance(WANTED, { on: "stopRequested", stop: { graceSeconds: 30 } });
    assert.equal(asked.phase, "syncing");
    assert.equal(nextStep(asked), "enterStopping");
  });

  test("a removal keeps the failure and the choice about the logs", () => {
    const failed = advance(WANTED, { on: "stopRequested", stop: { graceSeconds: 30, failure: evicted } });
    const kept = advance(failed, { on: "removed", stop: { graceSeconds: 5 }, keepLogs: true });
    const again = advance(kept, { on: "removed", stop: { graceSeconds: 60 } });
    assert.deepEqual(again, {
      phase: "syncing",
      stop: { graceSeconds: 5, failure: evicted },
      isWanted: false,
      keepLogs: true,
      isKilled: false,
    });
  });
});
