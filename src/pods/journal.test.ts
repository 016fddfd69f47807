import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { type EndedSpan, Tracer } from "../lib/tracer.ts";
import { Journal } from "./journal.ts";

const web = { uid: "u1", name: "web", namespace: "default" };

test("a step has its times, and its end is final", async () => {
  const clock = new FakeClock({ wall: 1000, mono: 0 });
  const journal = new Journal({ clock }).of(web);
  const step = journal.begin("pull", { container: "app", detail: "queued" });
  await clock.advance(500);
  step.done("done");
  step.fail(new Error("too late"));
  assert.deepEqual(journal.history, [
    { step: "pull", container: "app", since: 1000, until: 1500, outcome: "ok", detail: "done" },
  ]);
  assert.deepEqual(journal.distinctErrors, []);
});

test("progress is part of a running step, new at each report, and ends with it", () => {
  const journal = new Journal({ clock: new FakeClock() });
  const changes: string[] = [];
  journal.onChange((uid) => void changes.push(uid), new AbortController());
  const own = journal.of(web);
  const step = own.begin("pull", { container: "app", detail: "a:1" });
  step.detail("a:1: pulling", { doneBytes: 1 });
  step.detail("a:1: pulling", { doneBytes: 2 });
  assert.deepEqual(own.current?.progress, { doneBytes: 2 });
  step.detail("a:1: unpacking");
  assert.equal(own.current?.progress, undefined);
  step.detail("a:1: unpacking");
  assert.equal(changes.length, 4);
  step.detail("a:1: pulling", { doneBytes: 3 });
  step.done("a:1");
  assert.equal("progress" in (own.history[0] ?? {}), false);
});

test("the same error is counted, not repeated", async () => {
  const clock = new FakeClock({ wall: 1000, mono: 0 });
  const journal = new Journal({ clock }).of(web);
  for (let i = 0; i < 3; i++) {
    journal.begin("create", { container: "app" }).fail(new Error("no such file"));
    await clock.advance(1000);
  }
  assert.deepEqual(journal.distinctErrors, [
    { step: "create", container: "app", message: "no such file", count: 3, first: 1000, last: 3000 },
  ]);
});

test("the journal is bounded, whatever the pod does", () => {
  const journal = new Journal({ clock: new FakeClock() });
  const own = journal.of(web);
  for (let i = 0; i < 5000; i++) {
    own.begin("start").fail(new Error(`error ${i}`));
    own.event("Warning", "Failed", `event ${i}`);
  }
  assert.equal(own.history.length, 64);
  assert.equal(own.distinctErrors.length, 16);
  assert.equal(journal.events(0).length, 1000);
});

test("a repeated event is one event with a count and a new sequence number", () => {
  const journal = new Journal({ clock: new FakeClock() });
  journal.of(web).event("Warning", "BackOff", "again");
  journal.of(web).event("Normal", "Started", "Container started");
  journal.of(web).event("Warning", "BackOff", "again");
  const [started, backoff] = journal.events(1);
  assert.equal(started?.reason, "Started");
  assert.deepEqual([backoff?.reason, backoff?.count, backoff?.sequence], ["BackOff", 2, 3]);
});

test("each text of the journal is bounded, whatever its author", () => {
  const journal = new Journal({ clock: new FakeClock() });
  const own = journal.of(web);
  const huge = "x".repeat(1024 * 1024);
  const bytes = (text = ""): number => Buffer.byteLength(text);
  const detail = (): number => bytes(own.history.at(-1)?.detail);
  const step = own.begin("start", { detail: huge });
  assert.equal(detail(), 512, "begin");
  step.detail(`y${huge}`);
  assert.equal(own.history.at(-1)?.detail[0], "y");
  assert.equal(detail(), 512, "detail");
  step.done(`z${huge}`);
  assert.equal(own.history.at(-1)?.detail[0], "z");
  assert.equal(detail(), 512, "done");
  own.note("start", huge);
  assert.equal(detail(), 512, "note");
  own.setNext({ at: 1, why: huge });
  assert.equal(bytes(own.next?.why), 512, "setNext");
  own.begin("start").fail(new Error(huge));
  assert.equal(detail(), 512, "fail");
  assert.equal(bytes(own.distinctErrors[0]?.message), 1024, "error");
  own.event("Warning", "Failed", huge);
  assert.equal(bytes(journal.events(0)[0]?.message), 2048, "event");
});

test("steps that go on beside each other are spans of the same pass, and none outside of one", async () => {
  const clock = new FakeClock();
  const spans: EndedSpan[] = [];
  const tracer = new Tracer({ clock, ended: (span) => void spans.push(span) }, { samplingRatePerMillion: 1_000_000 });
  const journal = new Journal({ clock, tracer }).of(web);
  journal.begin("waiting").done();
  assert.equal(spans.length, 0);
  const pass = tracer.begin("syncPod", { parent: undefined });
  await tracer.run(pass, async () => {
    const [first, second] = [journal.begin("volumes"), journal.begin("sandbox")];
    first.done();
    second.abort();
  });
  const [volumes, sandbox] = spans;
  assert.deepEqual([volumes?.name, sandbox?.name], ["volumes", "sandbox"]);
  for (const span of [volumes, sandbox]) assert.equal(span?.parentSpanId, pass.context.spanId, span?.name);
  assert.deepEqual([volumes?.attributes["outcome"], sandbox?.error], ["ok", undefined]);
});
