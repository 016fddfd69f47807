import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { type Abortable, AbortedError, AbortScope, abortCalls, isAborted, TimeLimitError, withScope } from "./abort.ts";
import { FakeClock } from "./clock.ts";

test("a scope aborts with the reason of whichever parent aborts, and not the other way", () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const scope = new AbortScope([a.signal, b.signal]);
  b.abort("because");
  assert.equal(scope.signal.reason, "because");
  const other = new AbortScope([a.signal]);
  other.abort();
  assert.ok(other.signal.reason instanceof AbortedError);
  assert.equal(a.signal.aborted, false);
});

test("a scope passes its signal on when it is spread into options", () => {
  const scope = new AbortScope([]);
  const call = (options: Abortable): Abortable => ({ ...options });
  assert.equal(call(scope).signal, scope.signal);
});

test("a scope of an aborted parent is aborted from the start and sets no timer", () => {
  const clock = new FakeClock();
  const scope = new AbortScope([AbortSignal.abort("gone")], { clock, ms: 10 });
  assert.equal(scope.signal.reason, "gone");
  assert.equal(clock.waiting, 0);
});

test("the time limit aborts on the injected clock", async () => {
  const clock = new FakeClock();
  const scope = new AbortScope([], { clock, ms: 10 });
  await clock.advance(9);
  assert.equal(scope.signal.aborted, false);
  await clock.advance(1);
  assert.ok(scope.signal.reason instanceof TimeLimitError);
});

test("a disposed scope leaves neither listener nor timer behind, also after an error", async () => {
  const clock = new FakeClock();
  const parent = new AbortController();
  const work = withScope([parent.signal], { clock, ms: 10 }, async () => {
    assert.equal(getEventListeners(parent.signal, "abort").length, 1);
    throw new Error("failed");
  });
  await assert.rejects(work, /failed/);
  assert.equal(getEventListeners(parent.signal, "abort").length, 0);
  assert.equal(clock.waiting, 0);
});

test("an abort stops the time limit's timer", () => {
  const clock = new FakeClock();
  new AbortScope([], { clock, ms: 10 }).abort();
  assert.equal(clock.waiting, 0);
});

const limit = new TimeLimitError(5);
const asked = new AbortedError();
const abortError = Object.assign(new Error("The operation was aborted"), { name: "AbortError" });
const cases = [
  { name: "the reason itself", signal: AbortSignal.abort(asked), error: asked, want: true },
  { name: "an AbortError of node", signal: AbortSignal.abort(asked), error: abortError, want: true },
  { name: "another error after the abort", signal: AbortSignal.abort(asked), error: new Error("x"), want: false },
  { name: "an abort without the signal", signal: new AbortController().signal, error: asked, want: false },
  { name: "a time limit, which is a failure", signal: AbortSignal.abort(limit), error: limit, want: false },
  { name: "an AbortError because of a time limit", signal: AbortSignal.abort(limit), error: abortError, want: false },
];
for (const c of cases) {
  test(`isAborted: ${c.name} is ${c.want ? "quiet" : "an error"}`, () => {
    assert.equal(isAborted(c.error, c.signal), c.want);
  });
}

test("calls of a signal share one listener, and only those that still wait are made", () => {
  const controller = new AbortController();
  const made: string[] = [];
  const calls = [1, 2, 3].map((number) => () => void made.push(`call ${number}`));
  for (const call of calls) abortCalls(controller.signal).add(call);
  assert.equal(getEventListeners(controller.signal, "abort").length, 1);
  for (const call of calls.slice(1, 2)) abortCalls(controller.signal).delete(call);
  controller.abort();
  assert.deepEqual(made, ["call 1", "call 3"]);
  assert.equal(abortCalls(controller.signal).size, 0);
});
