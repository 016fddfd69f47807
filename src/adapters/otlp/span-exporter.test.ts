import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import type { EndedSpan } from "../../lib/tracer.ts";
import { SpanExporter } from "./span-exporter.ts";

function span(name: string): EndedSpan {
  const ids = { traceId: "a".repeat(32), spanId: "b".repeat(16), isSampled: true };
  return { ...ids, name, kind: "internal", startedAt: 1, endedAt: 2, attributes: {} };
}

function site() {
  const clock = new FakeClock();
  const batches: string[][] = [];
  const counted = new Map<string, number>();
  let failures = 0;
  let isClosed = false;
  const stop = new AbortController();
  const exporter = new SpanExporter({
    clock,
    log: silent,
    spans: { inc: ([outcome = ""] = [], by = 1) => void counted.set(outcome, (counted.get(outcome) ?? 0) + by) },
    sender: {
      send: async (spans, { signal }) => {
        signal.throwIfAborted();
        if (failures > 0) {
          failures -= 1;
          throw new Error("unreachable");
        }
        batches.push(spans.map(({ name }) => name));
      },
      close: () => {
        isClosed = true;
      },
    },
  });
  const done = exporter.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort(new AbortedError());
    await done;
  };
  const failNext = (count: number): void => {
    failures = count;
  };
  return { clock, batches, counted, exporter, end, failNext, isClosed: () => isClosed };
}

const add = ({ exporter }: ReturnType<typeof site>, count: number): void => {
  for (let at = 0; at < count; at++) exporter.add(span(`s${at}`));
};

test("spans of five seconds are one batch; nothing is sent without any", async () => {
  const on = site();
  await on.clock.advance(60_000);
  assert.deepEqual(on.batches, []);
  add(on, 1);
  await on.clock.advance(4000);
  add(on, 1);
  assert.deepEqual(on.batches, []);
  await on.clock.advance(1000);
  assert.deepEqual(on.batches, [["s0", "s0"]]);
  await on.end();
  assert.equal(on.isClosed(), true);
});

test("a full batch is sent at once", async () => {
  const on = site();
  add(on, 600);
  await on.clock.advance(0);
  assert.deepEqual(
    on.batches.map(({ length }) => length),
    [512],
  );
  await on.end();
});

test("the queue is bounded: what is too much is dropped and counted, and adding never waits", async () => {
  const on = site();
  on.failNext(1000);
  add(on, 5000);
  assert.equal(on.counted.get("dropped"), 5000 - 2048);
  await on.end();
});

test("a batch that is not taken is sent again, for a minute at most", async () => {
  const on = site();
  on.failNext(2);
  add(on, 1);
  await on.clock.advance(5000 + 5000);
  assert.deepEqual(on.batches, []);
  await on.clock.advance(10_000);
  assert.deepEqual(on.batches, [["s0"]]);
  on.failNext(1000);
  add(on, 3);
  await on.clock.advance(90_000);
  assert.equal(on.counted.get("failed"), 3);
  assert.equal(on.counted.get("exported"), 1);
  await on.end();
});

test("what is left is sent when the agent stops", async () => {
  const on = site();
  add(on, 3);
  await on.end();
  assert.deepEqual(on.batches, [["s0", "s1", "s2"]]);
});
