import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeRuntime } from "../adapters/runtime/fake.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { AbortedError, manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import { PullProgressWatch, StuckPullError } from "./pull-progress.ts";
import type { PullDetail } from "./shared-pulls.ts";

const MIB = 1024 * 1024;

class Watching {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly options = new LiveValue({ progressTimeoutMs: 0 });
  readonly watch = new PullProgressWatch({ images: this.runtime, clock: this.clock }, this.options);
  readonly signal = manyListeners().signal;

  /** Begins a pull; `details` is what it reports. */
  pull(image: string, signal = this.signal): { details: PullDetail[]; result: Promise<unknown> } {
    const details: PullDetail[] = [];
    const work = { signal, onDetail: (detail: PullDetail) => void details.push(detail) };
    const result = this.watch.during(image, work, (options) => this.runtime.pullImage(image, {}, options));
    return { details, result: result.catch((error: unknown) => error) };
  }

  get polls(): number {
    return this.runtime.control.count("pullProgress");
  }
}

test("a running pull reports bytes, rate and remaining time once a second", async () => {
  const watching = new Watching();
  watching.runtime.image("app:1", { state: "pullable", pullMs: 4000, sizeBytes: 40 * MIB });
  const { details } = watching.pull("app:1");
  await watching.clock.advance(3500);
  const total = { totalBytes: 40 * MIB };
  assert.deepEqual(details, [
    { text: "pulling", progress: { doneBytes: 10 * MIB, ...total } },
    {
      text: "pulling",
      progress: { doneBytes: 20 * MIB, ...total, bytesPerSecond: 10 * MIB, remainingMs: 2000 },
    },
    {
      text: "pulling",
      progress: { doneBytes: 30 * MIB, ...total, bytesPerSecond: 10 * MIB, remainingMs: 1000 },
    },
  ]);
});

test("bytes of several tags that cannot be told apart are shown as such", async () => {
  const watching = new Watching();
  watching.runtime.image("app:1", { state: "pullable", pullMs: 4000 });
  const { details } = watching.pull("app:1");
  for (const [doneBytes, text] of [
    [10, "pulling, counted with other tags of the repository"],
    [20, "unpacking, counted with other tags of the repository"],
  ] as const) {
    const progress = { doneBytes, totalBytes: 20, isTransferring: true, isShared: true };
    watching.runtime.pullProgress = async () => new Map([["app:1", progress]]);
    await watching.clock.advance(1000);
    assert.equal(details.at(-1)?.text, text);
  }
});

test("a pull of less than a second costs no call, and nothing is asked when none runs", async () => {
  const watching = new Watching();
  watching.runtime.image("app:1", { state: "pullable", pullMs: 900 });
  const { result } = watching.pull("app:1");
  await watching.clock.advance(10_000);
  await result;
  assert.equal(watching.polls, 0);
  assert.equal(watching.clock.waiting, 0);
});

test("all pulls are asked for in one call", async () => {
  const watching = new Watching();
  for (const image of ["a:1", "b:1", "c:1"]) {
    watching.runtime.image(image, { state: "pullable", pullMs: 3500 });
    watching.pull(image);
  }
  await watching.clock.advance(10_000);
  assert.equal(watching.polls, 3);
  assert.equal(watching.clock.waiting, 0);
});

test("a pull that begins while the runtime is asked starts no second loop", async () => {
  const watching = new Watching();
  watching.runtime.control.delay("pullProgress", 500);
  watching.runtime.image("a:1", { state: "pullable", pullMs: 1200 });
  watching.runtime.image("b:1", { state: "pullable", pullMs: 5000 });
  watching.pull("a:1");
  await watching.clock.advance(1300);
  watching.pull("b:1");
  await watching.clock.advance(3200);
  assert.equal(watching.polls, 3);
  await watching.clock.advance(5000);
  assert.equal(watching.clock.waiting, 0);
});

test("a runtime that reports no progress is asked once, and the pull goes on", async () => {
  const watching = new Watching();
  watching.options.set({ progressTimeoutMs: 1000 });
  watching.runtime.images.reportsProgress = false;
  watching.runtime.image("app:1", { state: "pullable", pullMs: 60_000 });
  const { details, result } = watching.pull("app:1");
  await watching.clock.advance(60_000);
  assert.match(String(await result), /^sha256:/);
  assert.deepEqual([watching.polls, details], [1, []]);
});

test("a failed look is no failure of the pull", async () => {
  const watching = new Watching();
  watching.options.set({ progressTimeoutMs: 3000 });
  watching.runtime.control.fail("pullProgress", new RuntimeError("Unavailable", "gone"), 5);
  watching.runtime.image("app:1", { state: "pullable", pullMs: 20_000 });
  const { result } = watching.pull("app:1");
  await watching.clock.advance(20_000);
  assert.match(String(await result), /^sha256:/);
});

test("what is received whole is unpacked, and that is not stuck", async () => {
  const watching = new Watching();
  watching.options.set({ progressTimeoutMs: 3000 });
  watching.runtime.image("app:1", { state: "pullable", pullMs: 0, sizeBytes: MIB, stallsAtBytes: MIB });
  const { details } = watching.pull("app:1");
  await watching.clock.advance(60_000);
  assert.equal(details.at(-1)?.text, "unpacking");
  assert.equal(watching.runtime.control.inFlight("pullImage"), 1);
});

test("a pull that stands still is cancelled after the limit, which may change meanwhile", async () => {
  const watching = new Watching();
  watching.runtime.image("app:1", { state: "pullable", pullMs: 1000, sizeBytes: 4 * MIB, stallsAtBytes: MIB });
  const { result } = watching.pull("app:1");
  await watching.clock.advance(3_600_000);
  assert.equal(watching.runtime.control.inFlight("pullImage"), 1, "off by default");
  watching.options.set({ progressTimeoutMs: 60_000 });
  await watching.clock.advance(1000);
  const error = await result;
  assert.ok(error instanceof StuckPullError);
  assert.match(
    error.message,
    /^pull made no progress for 1m \(imagePullProgressTimeout\) after 1\.0Mi of 4\.0Mi bytes$/,
  );
  assert.equal(watching.clock.waiting, 0);
});

test("a pull that waits for another is not stuck while the other goes on", async () => {
  const watching = new Watching();
  watching.options.set({ progressTimeoutMs: 5000 });
  // Unknown to the runtime: no transfer of its own, as while it waits for its turn there.
  const waits = new Promise(() => undefined);
  const work = { signal: watching.signal, onDetail: () => undefined };
  const result = watching.watch.during("waits:1", work, ({ signal }) =>
    Promise.race([
      waits,
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    ]),
  );
  const ended = result.catch((error: unknown) => error);
  watching.runtime.image("flows:1", { state: "pullable", pullMs: 20_000 });
  watching.pull("flows:1");
  await watching.clock.advance(20_000);
  const before = await Promise.race([ended, Promise.resolve("waits")]);
  assert.equal(before, "waits");
  await watching.clock.advance(6000);
  assert.match(String(await ended), /before the registry sent the image's manifest/);
});

test("a pull that the runtime does not report hides neither the progress nor the standstill of another", async () => {
  const watching = new Watching();
  watching.options.set({ progressTimeoutMs: 5000 });
  for (const image of ["unreported:1", "app:1"]) watching.runtime.image(image, { state: "pullable", pullMs: 60_000 });
  const progress = { doneBytes: 10, totalBytes: 20, isTransferring: true };
  watching.runtime.pullProgress = async () => new Map([["app:1", progress]]);
  const unreported = watching.pull("unreported:1");
  const { details, result } = watching.pull("app:1");
  await watching.clock.advance(6000);
  assert.ok((await result) instanceof StuckPullError);
  assert.deepEqual([details.length, unreported.details.length], [6, 0]);
  assert.equal(watching.runtime.control.inFlight("pullImage"), 1);
});

test("a pull that ends while the runtime is asked reports no more", async () => {
  const watching = new Watching();
  watching.runtime.control.delay("pullProgress", 500);
  watching.runtime.image("short:1", { state: "pullable", pullMs: 1200 });
  watching.runtime.image("long:1", { state: "pullable", pullMs: 5000 });
  const short = watching.pull("short:1");
  const long = watching.pull("long:1");
  await watching.clock.advance(1600);
  assert.deepEqual([short.details.length, long.details.length], [0, 1]);
});

test("a registry that sends more than the manifest says does not fill the disk", async () => {
  const watching = new Watching();
  watching.runtime.image("app:1", { state: "pullable", pullMs: 1000, sizeBytes: MIB, stallsAtBytes: 2 * MIB });
  const { result } = watching.pull("app:1");
  await watching.clock.advance(3000);
  assert.match(String(await result), /registry sent more bytes of blob sha256:\w+ than the manifest says/);
  assert.equal(watching.runtime.control.inFlight("pullImage"), 0);
});

test("an abort cancels the pull with its own reason", async () => {
  const watching = new Watching();
  const given = manyListeners();
  watching.runtime.image("app:1", { state: "pullable", pullMs: 10_000 });
  const { result } = watching.pull("app:1", given.signal);
  await watching.clock.advance(1500);
  given.abort(new AbortedError("deleted"));
  assert.equal(await result, given.signal.reason);
  assert.equal(watching.clock.waiting, 0);
});

test("the rate is that of the last ten seconds", async () => {
  const clock = new FakeClock();
  let doneBytes = 0;
  const images = {
    pullProgress: async () => {
      doneBytes += (clock.now().mono <= 20_000 ? 1 : 10) * MIB;
      return new Map([["app:1", { doneBytes, totalBytes: 1000 * MIB, isTransferring: true }]]);
    },
  };
  const watch = new PullProgressWatch({ images, clock }, new LiveValue({ progressTimeoutMs: 0 }));
  const details: PullDetail[] = [];
  const work = { signal: manyListeners().signal, onDetail: (detail: PullDetail) => void details.push(detail) };
  void watch.during("app:1", work, () => new Promise(() => undefined));
  await clock.advance(20_500);
  assert.equal(details.at(-1)?.progress?.bytesPerSecond, MIB);
  await clock.advance(15_000);
  assert.equal(details.at(-1)?.progress?.bytesPerSecond, 10 * MIB);
});
