import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Event } from "../model/generated/types.ts";
import type { EventFacts } from "./correlate.ts";
import { EventRecorder } from "./recorder.ts";

const facts = (message: string): EventFacts => ({
  type: "Normal",
  reason: "Started",
  message,
  about: { kind: "Pod", namespace: "ns", name: "web", uid: "u1", fieldPath: "spec.containers{main}" },
});

function site() {
  const clock = new FakeClock();
  const made: Event[] = [];
  const patched: { name: string; body: { count: number } }[] = [];
  const failures: ApiError[] = [];
  const api = {
    create: async (_resource: unknown, { object }: { object: Event }) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      made.push(object);
      return object;
    },
    patch: async (_resource: unknown, change: { name: string; body: { count: number } }) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      patched.push(change);
    },
  };
  const dropped = { count: 0 };
  const load = { isBusy: false };
  const recorder = new EventRecorder(
    // The fake speaks of one kind only.
    {
      api: api as never,
      clock,
      log: silent,
      random: () => 0.5,
      dropped: () => void dropped.count++,
      isBusy: () => load.isBusy,
    },
    { nodeName: "n1" },
  );
  const stop = manyListeners();
  const running = recorder.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { clock, made, patched, failures, recorder, dropped, load, end };
}

test("an event is sent with whom it is about and who saw it", async () => {
  const { clock, made, recorder, end } = site();
  recorder.record(facts("Container started"));
  await clock.advance(0);
  const [event] = made;
  assert.equal(event?.involvedObject.fieldPath, "spec.containers{main}");
  assert.deepEqual(event?.source, { component: "kubelet", host: "n1" });
  assert.equal(event?.metadata.namespace, "ns");
  assert.match(event?.metadata.name ?? "", /^web\.[0-9a-f]+$/);
  await end();
});

test("names of events of one moment sort in the order of sending", async () => {
  const { clock, made, recorder, end } = site();
  for (const message of ["Failed to pull image", "Error: ErrImagePull"]) recorder.record(facts(message));
  await clock.advance(0);
  const names = made.map(({ metadata }) => metadata.name);
  assert.equal(new Set(names).size, 2);
  assert.deepEqual([...names].sort(), names);
  await end();
});

test("annotations are those of the Event object", async () => {
  const { clock, made, recorder, end } = site();
  recorder.record({ ...facts("x"), annotations: { starved_resource: "memory" } });
  await clock.advance(0);
  assert.deepEqual(made[0]?.metadata.annotations, { starved_resource: "memory" });
  await end();
});

test("the same again counts up the object that is there", async () => {
  const { clock, made, patched, recorder, end } = site();
  recorder.record(facts("x"));
  await clock.advance(0);
  recorder.record(facts("x"));
  await clock.advance(0);
  assert.equal(made.length, 1);
  assert.deepEqual(
    patched.map(({ name, body }) => [name, body.count]),
    [[made[0]?.metadata.name, 2]],
  );
  await end();
});

test("an object that ended meanwhile is made anew", async () => {
  const { clock, made, failures, recorder, end } = site();
  recorder.record(facts("x"));
  await clock.advance(0);
  failures.push(new ApiError("NotFound", "gone"));
  recorder.record(facts("x"));
  await clock.advance(0);
  assert.deepEqual(
    made.map(({ count }) => count),
    [1, 2],
  );
  await end();
});

test("a server that is away is asked again; one that refuses is not", async () => {
  const { clock, made, failures, recorder, end } = site();
  failures.push(new ApiError("Unavailable", "away"));
  recorder.record(facts("kept"));
  await clock.advance(6000);
  assert.deepEqual(
    made.map(({ message }) => message),
    ["kept"],
  );
  failures.push(new ApiError("Forbidden", "the namespace ends"));
  recorder.record(facts("refused"));
  recorder.record(facts("next"));
  await clock.advance(0);
  assert.deepEqual(
    made.map(({ message }) => message),
    ["kept", "next"],
  );
  await end();
});

test("an event waits for the certificate that is still missing", async () => {
  const { clock, made, failures, recorder, end } = site();
  failures.push(new ApiError("Unauthorized", "no certificate yet"));
  recorder.record(facts("Starting kubelet."));
  await clock.advance(11_000);
  assert.equal(made.length, 1);
  await end();
});

test("more than can wait are dropped and counted; nobody is kept waiting", async () => {
  const { clock, failures, recorder, dropped, end } = site();
  failures.push(new ApiError("Unavailable", "away"));
  for (let n = 0; n < 1100; n++) {
    recorder.record({ ...facts("m"), about: { ...facts("m").about, uid: `u${n}` } });
    if (n === 0) await clock.advance(0);
  }
  assert.equal(dropped.count, 99);
  await end();
});

test("what is usual gives way to pods that wait for their start, for ten seconds at most; warnings never do", async () => {
  const { clock, made, recorder, load, end } = site();
  const words = (): string[] => made.map(({ message }) => message ?? "");
  load.isBusy = true;
  recorder.record(facts("first"));
  await clock.advance(5000);
  recorder.record({ ...facts("wrong"), type: "Warning", reason: "Failed" });
  recorder.record({ ...facts("second"), reason: "Pulled" });
  await clock.advance(250);
  assert.deepEqual(words(), ["wrong"]);
  await clock.advance(4750);
  assert.deepEqual(words(), ["wrong", "first"]);
  load.isBusy = false;
  await clock.advance(250);
  assert.deepEqual(words(), ["wrong", "first", "second"]);
  // When it happened, not when it was told.
  assert.equal(Date.parse(made[2]?.lastTimestamp ?? "") - Date.parse(made[1]?.lastTimestamp ?? ""), 5000);
  await end();
});
