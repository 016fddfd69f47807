import assert from "node:assert/strict";
import { test } from "node:test";
import { longestFirst, runInLanes, type Scheduled } from "./lanes.ts";

const suite = (name: string, more: Partial<Scheduled> = {}): Scheduled => ({ name, isAlone: false, ...more });

/** Runs suites that end when told to, and records which ran together. */
function stage(): {
  run: (suite: Scheduled) => Promise<void>;
  end: (name: string) => Promise<void>;
  running: Set<string>;
  began: string[];
} {
  const running = new Set<string>();
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    running,
    began,
    run: ({ name }) => {
      running.add(name);
      began.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve)).finally(() => running.delete(name));
    },
    end: async (name) => {
      ends.get(name)?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("the longest come first, and what was never measured before them", () => {
  const order = longestFirst([suite("a"), suite("b"), suite("c"), suite("d")], { a: 5, b: 50, d: 7 });
  assert.deepEqual(
    order.map(({ name }) => name),
    ["c", "b", "d", "a"],
  );
});

test("a free lane takes the next suite", async () => {
  const { run, end, running } = stage();
  const all = runInLanes([suite("a"), suite("b"), suite("c")], 2, run);
  assert.deepEqual([...running], ["a", "b"]);
  await end("b");
  assert.deepEqual([...running], ["a", "c"]);
  await end("a");
  await end("c");
  await all;
});

test("suites that share something do not meet, and do not hold others back", async () => {
  const { run, end, running } = stage();
  const shares = "huge pages";
  const all = runInLanes([suite("a", { shares }), suite("b", { shares }), suite("c")], 2, run);
  assert.deepEqual([...running], ["a", "c"]);
  await end("c");
  assert.deepEqual([...running], ["a"]);
  await end("a");
  assert.deepEqual([...running], ["b"]);
  await end("b");
  await all;
});

test("a suite that has to be alone runs after the others", async () => {
  const { run, end, running, began } = stage();
  const all = runInLanes([suite("alone", { isAlone: true }), suite("a"), suite("b")], 2, run);
  assert.deepEqual([...running], ["a", "b"]);
  await end("a");
  assert.deepEqual([...running], ["b"]);
  await end("b");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([...running], ["alone"]);
  await end("alone");
  await all;
  assert.deepEqual(began, ["a", "b", "alone"]);
});
