import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { type EndedSpan, parseTraceparent, Tracer } from "./tracer.ts";

const ALL = 1_000_000;

function site(samplingRatePerMillion = ALL) {
  const clock = new FakeClock({ wall: 1000, mono: 0 });
  const ended: EndedSpan[] = [];
  const tracer = new Tracer({ clock, ended: (span) => void ended.push(span) }, { samplingRatePerMillion });
  return { clock, ended, tracer };
}

test("a span has its times, its parent's trace, and one end", async () => {
  const { clock, ended, tracer } = site();
  const outer = tracer.begin("outer", { parent: undefined });
  await clock.advance(10);
  const inner = tracer.begin("inner", { parent: outer, kind: "client", attributes: { a: 1 } });
  await clock.advance(5);
  inner.end({ error: "broken", attributes: { b: true } });
  inner.end();
  outer.end();
  const [first, second] = ended;
  assert.equal(ended.length, 2);
  assert.deepEqual(
    [first?.name, first?.kind, first?.startedAt, first?.endedAt, first?.attributes, first?.error],
    ["inner", "client", 1010, 1015, { a: 1, b: true }, "broken"],
  );
  assert.equal(first?.parentSpanId, second?.spanId);
  assert.equal(first?.traceId, second?.traceId);
  assert.equal(second?.parentSpanId, undefined);
  assert.match(inner.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
});

test("the running code knows its span across awaits, and beside others", async () => {
  const { tracer } = site();
  const names: (string | undefined)[] = [];
  const work = async (name: string): Promise<void> => {
    await tracer.run(tracer.begin(name, { parent: undefined }), async () => {
      await Promise.resolve();
      names.push(tracer.active?.options.name);
    });
  };
  await Promise.all([work("a"), work("b")]);
  assert.deepEqual(names, ["a", "b"]);
  assert.equal(tracer.active, undefined);
});

test("an entered span is the active one until it ends, then the one around it", async () => {
  const { tracer } = site();
  await tracer.run(tracer.begin("around", { parent: undefined }), async () => {
    const step = tracer.begin("step", { parent: tracer.active });
    tracer.enter(step);
    await Promise.resolve();
    assert.equal(tracer.active, step);
    step.end();
    assert.equal(tracer.active?.options.name, "around");
  });
});

test("work that fails ends its span with the message", async () => {
  const { ended, tracer } = site();
  const fail = async (): Promise<never> => {
    throw new Error("no such image");
  };
  await assert.rejects(tracer.run(tracer.begin("work", { parent: undefined }), fail), /no such image/);
  assert.equal(ended[0]?.error, "no such image");
});

test("an optional span is exported only if another began in it", () => {
  const { ended, tracer } = site();
  const start = tracer.begin("start", { parent: undefined, isOptional: true });
  const idle = tracer.begin("idle", { parent: start, isOptional: true });
  idle.end();
  const busy = tracer.begin("busy", { parent: start, isOptional: true });
  tracer.begin("call", { parent: busy }).end();
  busy.end();
  start.end();
  assert.deepEqual(
    ended.map(({ name }) => name),
    ["call", "busy", "start"],
  );
});

test("the ratio decides by the id of the trace; what a parent decided holds", () => {
  const share = (rate: number): number => {
    const { tracer } = site(rate);
    const spans = Array.from({ length: 2000 }, () => tracer.begin("x", { parent: undefined }));
    return spans.filter(({ context }) => context.isSampled).length / spans.length;
  };
  assert.equal(share(0), 0);
  assert.equal(share(ALL), 1);
  assert.ok(Math.abs(share(ALL / 4) - 0.25) < 0.06);
  const { tracer, ended } = site(0);
  const sampled = parseTraceparent(`00-${"a".repeat(32)}-${"b".repeat(16)}-01`);
  tracer.begin("x", { parent: sampled }).end();
  assert.deepEqual([ended[0]?.traceId, ended[0]?.parentSpanId], ["a".repeat(32), "b".repeat(16)]);
  const { tracer: all, ended: none } = site();
  all.begin("x", { parent: parseTraceparent(`00-${"a".repeat(32)}-${"b".repeat(16)}-00`) }).end();
  assert.deepEqual(none, []);
});

test("a trace context that is not valid is none", () => {
  const id = "a".repeat(32);
  for (const bad of [
    "",
    "x",
    `00-${id}-${"0".repeat(16)}-01`,
    `00-${"0".repeat(32)}-${"b".repeat(16)}-01`,
    `01-${id}`,
  ]) {
    assert.equal(parseTraceparent(bad), undefined, bad);
  }
});

test("texts of a span are bounded", () => {
  const { ended, tracer } = site();
  const huge = "x".repeat(1_000_000);
  tracer.begin(huge, { parent: undefined, attributes: { huge } }).end({ error: huge });
  const [span] = ended;
  for (const text of [span?.name, span?.attributes["huge"], span?.error]) assert.ok(String(text).length <= 1024);
});
