import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { LiveView, replaceFrame } from "./live-view.ts";
import type { Output } from "./output.ts";
import type { ViewModel } from "./view-model.ts";

function setup() {
  const clock = new FakeClock();
  const frames: string[] = [];
  let isStopped = false;
  let release: (() => void)[] = [];
  const out: Output = {
    isTerminal: true,
    color: false,
    isBroken: () => false,
    size: () => ({ columns: 80, rows: 24 }),
    onResize: () => undefined,
    send: async () => true,
    write: (text) => void frames.push(text),
    drained: () => (isStopped ? new Promise((resolve) => release.push(resolve)) : Promise.resolve()),
  };
  const state = { title: "kubelet", starting: undefined as ViewModel["starting"] };
  const model = (): ViewModel => ({
    title: state.title,
    stateDir: "/s",
    logFile: "/s/log",
    runtime: "",
    ports: [],
    kubeconfig: "",
    starting: state.starting,
    pods: [],
    urls: [],
    program: "kubelet",
    flags: "",
  });
  const controller = new AbortController();
  const view = new LiveView({ out, clock, model }, controller);
  const stopTerminal = (): void => {
    isStopped = true;
  };
  const resumeTerminal = (): void => {
    isStopped = false;
    for (const wake of release) wake();
    release = [];
  };
  return { clock, frames, state, controller, view, stopTerminal, resumeTerminal };
}

test("at most ten frames a second, however often something changes", async () => {
  const { clock, frames, state, view } = setup();
  for (let change = 0; change < 100; change++) {
    state.title = `kubelet ${change}`;
    view.changed();
    await clock.advance(10);
  }
  assert.ok(frames.length >= 9 && frames.length <= 11, `${frames.length} frames in a second`);
});

test("an idle view draws nothing and keeps no timer", async () => {
  const { clock, frames, view } = setup();
  view.changed();
  await clock.advance(10_000);
  assert.equal(frames.length, 1);
  assert.equal(clock.waiting, 0);
});

test("while a step is running its clock is drawn every second", async () => {
  const { clock, frames, state, view } = setup();
  state.starting = { text: "starting", since: clock.now().wall };
  view.changed();
  await clock.advance(5000);
  assert.ok(frames.length >= 5 && frames.length <= 7, `${frames.length} frames`);
  assert.match(frames.at(-1) ?? "", /starting \([45]s\)/);
});

test("a stopped terminal gets no further frame until it took the last one, then the newest", async () => {
  const { clock, frames, state, view, stopTerminal, resumeTerminal } = setup();
  view.changed();
  stopTerminal();
  await clock.advance(100);
  for (let change = 0; change < 600; change++) {
    state.title = `kubelet ${change}`;
    view.changed();
    await clock.advance(100);
  }
  assert.equal(frames.length, 1);
  resumeTerminal();
  await clock.advance(200);
  assert.equal(frames.length, 2);
  assert.match(frames[1] ?? "", /kubelet 599/);
});

test("the last frame is drawn at the end, and none after it", async () => {
  const { clock, frames, state, view, controller } = setup();
  view.changed();
  await clock.advance(100);
  state.title = "kubelet stopped";
  controller.abort();
  assert.match(frames.at(-1) ?? "", /kubelet stopped/);
  const count = frames.length;
  state.title = "later";
  view.changed();
  await clock.advance(1000);
  assert.equal(frames.length, count);
});

test("a new frame replaces the previous one", () => {
  assert.equal(replaceFrame([], ["a", "b"], 80), "\ra\u001b[K\nb\u001b[K\n\u001b[J");
  assert.equal(replaceFrame(["a", "b"], ["c"], 80), "\u001b[2A\rc\u001b[K\n\u001b[J");
  assert.equal(replaceFrame(["a"], ["a"], 80), "");
});

test("lines that a narrower terminal wrapped are counted by the rows they take now", () => {
  const painted = `\u001b[32m${"x".repeat(25)}\u001b[39m`;
  assert.match(replaceFrame([painted, ""], ["y"], 10), /^\u001b\[4A/);
});
