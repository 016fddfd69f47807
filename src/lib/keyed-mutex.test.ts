import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { KeyedMutex } from "./keyed-mutex.ts";

const never = { signal: new AbortController().signal };

function gate(): { open: () => void; opened: Promise<void> } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

test("work of one key runs in turn, work of another beside it", async () => {
  const mutex = new KeyedMutex();
  const { open, opened } = gate();
  const order: string[] = [];
  const first = mutex.run("a", () => opened.then(() => void order.push("first")), never);
  const second = mutex.run("a", async () => void order.push("second"), never);
  await mutex.run("b", async () => void order.push("other"), never);
  open();
  await Promise.all([first, second]);
  assert.deepEqual(order, ["other", "first", "second"]);
  await setImmediate();
  assert.equal(mutex.size, 0);
});

test("a failure is the caller's and lets the next one run", async () => {
  const mutex = new KeyedMutex();
  const failing = mutex.run("a", () => Promise.reject(new Error("broken")), never);
  const next = mutex.run("a", async () => "done", never);
  await assert.rejects(failing, /broken/);
  assert.equal(await next, "done");
});

test("a waiter whose signal aborts leaves at once, and nobody passes the one that still runs", async () => {
  const mutex = new KeyedMutex();
  const { open, opened } = gate();
  const order: string[] = [];
  const first = mutex.run("a", () => opened.then(() => void order.push("first")), never);
  const abort = new AbortController();
  const impatient = mutex.run("a", async () => void order.push("impatient"), abort);
  abort.abort(new Error("too late"));
  await assert.rejects(impatient, /too late/);
  const last = mutex.run("a", async () => void order.push("last"), never);
  await setImmediate();
  assert.deepEqual(order, []);
  open();
  await Promise.all([first, last]);
  assert.deepEqual(order, ["first", "last"]);
});
