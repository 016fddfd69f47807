import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Lane, type LaneOptions } from "./lane.ts";
import { LiveValue } from "./live.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A lane whose works end when the test says so, by name. */
function manual(limit: number): {
  limit: LiveValue<number>;
  lane: Lane;
  begun: string[];
  enter: (name: string, options?: Partial<LaneOptions>) => Promise<string>;
  end: (name: string) => Promise<void>;
} {
  const live = new LiveValue(limit);
  const lane = new Lane(live, new AbortController());
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    limit: live,
    lane,
    begun,
    enter: (name, options = {}) =>
      lane.run(
        () => {
          begun.push(name);
          return new Promise((resolve) => ends.set(name, () => resolve(name)));
        },
        { signal: new AbortController().signal, ...options },
      ),
    end: async (name) => {
      await turn();
      ends.get(name)?.();
      await turn();
    },
  };
}

test("as many as the limit run, the others in the order in which they came", async () => {
  const { lane, begun, enter, end } = manual(2);
  for (const name of ["a", "b", "c", "d"]) void enter(name);
  await turn();
  assert.deepEqual(begun, ["a", "b"]);
  assert.deepEqual([lane.running, lane.waiting], [2, 2]);
  await end("b");
  assert.deepEqual(begun, ["a", "b", "c"]);
});

test("critical works pass the others but not each other", async () => {
  const { begun, enter, end } = manual(1);
  void enter("running");
  for (const name of ["a", "b"]) void enter(name);
  for (const name of ["K", "L"]) void enter(name, { critical: true });
  for (const name of ["running", "K", "L", "a"]) await end(name);
  assert.deepEqual(begun, ["running", "K", "L", "a", "b"]);
});

test("a waiting work hears its place, also when a critical one passes it and when one before it leaves", async () => {
  const { enter, end } = manual(1);
  const heard: number[] = [];
  const leaver = new AbortController();
  void enter("running");
  const left = enter("leaves", { signal: leaver.signal });
  void enter("waits", { onPosition: (position) => heard.push(position) });
  void enter("critical", { critical: true });
  leaver.abort("left");
  await assert.rejects(left, (error) => error === "left");
  await end("running");
  await end("critical");
  assert.deepEqual(heard, [2, 3, 2, 1, 0]);
});

test("an aborted one never runs and leaves no listener; an aborted signal is refused at once", async () => {
  const { lane, begun, enter, end } = manual(1);
  const controller = new AbortController();
  void enter("running");
  const waiting = enter("waits", { signal: controller.signal });
  controller.abort("no");
  await assert.rejects(waiting, (error) => error === "no");
  await assert.rejects(enter("late", { signal: controller.signal }), (error) => error === "no");
  await end("running");
  assert.deepEqual(begun, ["running"]);
  assert.equal(lane.running, 0);
  const used = new AbortController();
  const done = enter("used", { signal: used.signal });
  await turn();
  assert.equal(getEventListeners(used.signal, "abort").length, 0);
  await end("used");
  assert.equal(await done, "used");
});

test("a failed work gives its place back", async () => {
  const { lane, begun, enter } = manual(1);
  const { signal } = new AbortController();
  await assert.rejects(
    lane.run(() => Promise.reject(new Error("x")), { signal }),
    /x/,
  );
  void enter("next");
  await turn();
  assert.deepEqual(begun, ["next"]);
});

test("a raised limit admits at once, a lowered one ends nobody, and 0 means none", async () => {
  const { limit, lane, begun, enter, end } = manual(1);
  for (const name of ["a", "b", "c", "d", "e", "f"]) void enter(name);
  await turn();
  limit.set(3);
  await turn();
  assert.deepEqual(begun, ["a", "b", "c"]);
  limit.set(2);
  await end("a");
  assert.equal(lane.running, 2);
  limit.set(0);
  await turn();
  assert.equal(begun.length, 6);
});
