import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyedQueue } from "./keyed-queue.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A queue whose runs end when the test says so. */
function manual(): {
  queue: KeyedQueue<string>;
  started: string[];
  end: (error?: Error) => Promise<void>;
  errors: unknown[];
} {
  const started: string[] = [];
  const errors: unknown[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const queue = new KeyedQueue<string>(
    (key, signal) =>
      new Promise((resolve, reject) => {
        started.push(key);
        ends.push((error) => (error === undefined ? resolve() : reject(error)));
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      }),
    { onError: (_key, error) => errors.push(error) },
  );
  const end = async (error?: Error): Promise<void> => {
    ends.shift()?.(error);
    await turn();
  };
  return { queue, started, end, errors };
}

test("a key runs once at a time and wake-ups during a run melt into one more", async () => {
  const { queue, started, end } = manual();
  queue.wake("a");
  assert.deepEqual(started, [], "never synchronously");
  await turn();
  queue.wake("a");
  queue.wake("a");
  queue.wake("a");
  await turn();
  assert.deepEqual(started, ["a"]);
  await end();
  assert.deepEqual(started, ["a", "a"]);
  await end();
  assert.deepEqual(started, ["a", "a"]);
  assert.equal(queue.size, 0);
});

test("wake-ups before the first run starts are that one run", async () => {
  const { queue, started, end } = manual();
  queue.wake("a");
  await turn();
  assert.equal(started.length, 1);
  await end();
  assert.equal(queue.isRunning("a"), false);
});

test("different keys run side by side", async () => {
  const { queue, started } = manual();
  queue.wake("a");
  queue.wake("b");
  await turn();
  assert.deepEqual(started, ["a", "b"]);
});

test("an error is told and the key goes on, with the wake-up that came meanwhile", async () => {
  const { queue, started, end, errors } = manual();
  queue.wake("a");
  await turn();
  queue.wake("a");
  await end(new Error("bad"));
  assert.deepEqual(errors.map(String), ["Error: bad"]);
  assert.equal(started.length, 2);
  await end();
  await queue.idle();
});

test("a dropped key is aborted quietly, and woken again it waits for the old run to end", async () => {
  const order: string[] = [];
  let running = 0;
  const queue = new KeyedQueue<string>(
    async (_key, signal) => {
      assert.equal(++running, 1, "two runs of one key at once");
      order.push("start");
      if (order.length === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      // An executor that finishes what it cannot leave half done.
      for (let i = 0; i < 5; i++) await turn();
      order.push("end");
      running--;
    },
    { onError: (_key, error) => assert.fail(String(error)) },
  );
  queue.wake("a");
  await turn();
  queue.wake("a");
  const dropped = queue.drop("a");
  queue.wake("a");
  queue.wake("a");
  await dropped;
  await queue.idle();
  assert.deepEqual(order, ["start", "end", "start", "end"]);
});

test("close aborts all, waits for them, and ignores later wake-ups", async () => {
  const { queue, started, errors } = manual();
  queue.wake("a");
  queue.wake("b");
  await turn();
  queue.wake("a");
  await queue.close();
  queue.wake("c");
  await turn();
  assert.deepEqual(started, ["a", "b"]);
  assert.deepEqual(errors, []);
  assert.equal(queue.size, 0);
});
