import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod, seen } from "../../../test/support/pods.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { nextCheckMs, onGrid } from "./check-delay.ts";
import { LogRotator, type RotationOptions } from "./log-rotator.ts";
import { planRecovery, planRotation } from "./plan-rotation.ts";
import type { OpenLog, RotationFiles } from "./rotate.ts";

const MIB = 1024 * 1024;
const WALL = new Date(2026, 10, 17, 9, 30, 0);

describe("the delay to the next check", () => {
  const cases = [
    { name: "an empty log of 10 MiB", size: 0, rate: 0, want: 437.5 },
    { name: "close to its limit", size: 9.9 * MIB, rate: 0, want: 25 },
    { name: "a fast writer", size: 5 * MIB, rate: 100 * MIB, want: 36.7 },
    { name: "over its limit", size: 11 * MIB, rate: 0, want: 20.8 },
    { name: "never longer than the interval", size: 0, rate: 0, max: 1000 * MIB, want: 10_000 },
    { name: "never a busy loop", size: 10, rate: 0, max: 10, want: 5 },
  ];
  for (const { name, size, rate, max, want } of cases) {
    test(name, () => {
      const ms = nextCheckMs({ size, maxBytes: max ?? 10 * MIB, bytesPerSecond: rate }, 10_000);
      assert.equal(Math.round(ms * 10) / 10, want);
    });
  }

  test("whatever it has grown to, a writer of 20 MB/s exceeds the limit by less than a twentieth before the next check", () => {
    for (let size = 0; size < 10 * MIB; size += 1000) {
      const ms = nextCheckMs({ size, maxBytes: 10 * MIB, bytesPerSecond: 0 }, 10_000);
      assert.ok(size + (20_000_000 * ms) / 1000 < 10.5 * MIB, `${size} bytes`);
    }
  });
});

describe("the grid of checks", () => {
  const cases = [
    { name: "a long delay ends at the multiple of 80 ms before", delayMs: 437.5, nowMs: 1003, want: 437 },
    { name: "one that ends at a line stays", delayMs: 357, nowMs: 1003, want: 357 },
    { name: "a shorter one ends at a multiple of 40 ms", delayMs: 100, nowMs: 1003, want: 77 },
    { name: "a quick one ends at a multiple of 10 ms", delayMs: 20.5, nowMs: 1003, want: 17 },
    { name: "it never loses more than half", delayMs: 20, nowMs: 1009.5, want: 10.5 },
    { name: "a short one stays", delayMs: 19.9, nowMs: 1003, want: 19.9 },
  ];
  for (const { name, delayMs, nowMs, want } of cases) {
    test(name, () => assert.equal(onGrid(delayMs, nowMs), want));
  }
});

describe("the plan of a rotation", () => {
  const facts = (names: string[], maxFiles = 5, busy: string[] = []) => ({
    base: "0.log",
    names,
    maxFiles,
    isBusy: (name: string) => busy.includes(name),
  });
  const cases = [
    {
      name: "the first one only renames",
      facts: facts(["0.log", "1.log"]),
      want: { remove: [], rotateTo: "0.log.20261117-093000", compress: [] },
    },
    {
      name: "the one before is compressed",
      facts: facts(["0.log", "0.log.20261117-092000"]),
      want: { remove: [], rotateTo: "0.log.20261117-093000", compress: ["0.log.20261117-092000"] },
    },
    {
      name: "the oldest go, compressed or not",
      facts: facts(["0.log", "0.log.20261117-01000" + "0.gz", "0.log.20261117-020000", "0.log.20261117-030000"], 3),
      want: {
        remove: ["0.log.20261117-010000.gz", "0.log.20261117-020000"],
        rotateTo: "0.log.20261117-093000",
        compress: ["0.log.20261117-030000"],
      },
    },
    {
      name: "with two files in all none of the rotated ones stays",
      facts: facts(["0.log", "0.log.20261117-030000"], 2),
      want: { remove: ["0.log.20261117-030000"], rotateTo: "0.log.20261117-093000", compress: [] },
    },
    {
      name: "what an interrupted compression left goes, what is being written stays",
      facts: facts(
        ["0.log", "0.log.20261117-01000" + "0.gz.tmp", "0.log.20261117-020000.gz.tmp", "0.log.20261117-020000"],
        5,
        ["0.log.20261117-020000.gz.tmp"],
      ),
      want: {
        remove: ["0.log.20261117-010000.gz.tmp"],
        rotateTo: "0.log.20261117-093000",
        compress: ["0.log.20261117-020000"],
      },
    },
    {
      name: "a plain file that is compressed already goes",
      facts: facts(["0.log", "0.log.20261117-010000", "0.log.20261117-010000.gz"]),
      want: { remove: ["0.log.20261117-010000"], rotateTo: "0.log.20261117-093000", compress: [] },
    },
    {
      name: "a second rotation within a second gets a name behind the first",
      facts: facts(["0.log", "0.log.20261117-093000"]),
      want: { remove: [], rotateTo: "0.log.20261117-093000_1", compress: ["0.log.20261117-093000"] },
    },
    {
      name: "a clock that was set back does not change the order",
      facts: facts(["0.log", "0.log.20261118-000000_9.gz"]),
      want: { remove: [], rotateTo: "0.log.20261118-000000_10", compress: [] },
    },
    {
      name: "files of others are left alone",
      facts: facts(["0.log", "10.log.20261117-010000", "0.log.bak", "0.logs.tmp"]),
      want: { remove: [], rotateTo: "0.log.20261117-093000", compress: [] },
    },
  ];
  for (const { name, facts: given, want } of cases) test(name, () => assert.deepEqual(planRotation(given, WALL), want));

  test("a recovery compresses all but the newest and rotates nothing", () => {
    const names = ["0.log", "0.log.20261117-010000", "0.log.20261117-020000", "0.log.20261117-030000", "0.log.x.tmp"];
    const want = { remove: ["0.log.x.tmp"], compress: ["0.log.20261117-010000", "0.log.20261117-020000"] };
    assert.deepEqual(planRecovery(facts(names)), want);
  });

  test("a recovery removes what is more than the limit, the current file counted", () => {
    const names = ["0.log", ...[1, 2, 3, 4, 5].map((hour) => `0.log.20261117-0${hour}0000.gz`)];
    assert.deepEqual(planRecovery(facts(names, 4)), {
      remove: ["0.log.20261117-010000.gz", "0.log.20261117-020000.gz"],
      compress: [],
    });
    assert.deepEqual(planRecovery(facts(names, 6)).remove, []);
  });
});

/** Files by their sizes, and whoever watches them. */
class MemoryLogs implements RotationFiles {
  readonly sizes = new Map<string, number>();
  readonly watched = new Map<string, () => void>();
  checks = 0;
  /** Paths of open logs, and how often open logs were measured; undefined if none can be opened. */
  opened: string[] | undefined;
  reads = 0;

  open(path: string): Promise<OpenLog | undefined> {
    const { opened } = this;
    if (opened === undefined || !this.sizes.has(path)) return Promise.resolve(undefined);
    opened.push(path);
    const size = (): number | undefined => {
      this.reads++;
      return this.sizes.get(path);
    };
    return Promise.resolve({ size, close: () => void opened.splice(opened.indexOf(path), 1) });
  }

  size(path: string): Promise<number | undefined> {
    this.checks++;
    return Promise.resolve(this.sizes.get(path));
  }

  names(directory: string): Promise<readonly string[]> {
    const inside = [...this.sizes.keys()].filter((path) => path.startsWith(`${directory}/`));
    return Promise.resolve(inside.map((path) => path.slice(directory.length + 1)));
  }

  rename(from: string, to: string): Promise<void> {
    this.sizes.set(to, this.sizes.get(from) ?? 0);
    this.sizes.delete(from);
    return Promise.resolve();
  }

  restore(from: string, to: string): Promise<void> {
    return this.sizes.has(to) ? Promise.resolve() : this.rename(from, to);
  }

  remove(path: string): Promise<void> {
    this.sizes.delete(path);
    return Promise.resolve();
  }

  compress(path: string, to: string): Promise<void> {
    this.sizes.delete(path);
    this.sizes.set(to, 1);
    return Promise.resolve();
  }

  onceWritten(path: string, callback: () => void): () => void {
    this.watched.set(path, callback);
    return () => void this.watched.delete(path);
  }

  /** As a container does: a watcher hears of it. */
  write(path: string, bytes: number): void {
    this.sizes.set(path, (this.sizes.get(path) ?? 0) + bytes);
    const callback = this.watched.get(path);
    this.watched.delete(path);
    callback?.();
  }
}

const LOG = "/logs/app/0.log";
const OPTIONS: RotationOptions = { maxBytes: 10 * MIB, maxFiles: 5, workers: 1, intervalMs: 10_000 };

function observedPod(containers: ObservedContainer[]): ObservedPod {
  const { uid = "", name = "" } = pod().build().metadata;
  return { uid, name, namespace: "default", readAt: 0, sandboxes: [], containers };
}

const RUNNING = observedPod([seen({ name: "app" }, { logPath: LOG })]);

class Bench {
  readonly files = new MemoryLogs();
  readonly clock = new FakeClock();
  readonly options = new LiveValue(OPTIONS);
  readonly reopened: string[] = [];
  reopenFails = 0;
  createsAndFails = false;
  private readonly stop = manyListeners();
  readonly rotator = new LogRotator(
    {
      files: this.files,
      clock: this.clock,
      log: silent,
      pods: () => [RUNNING],
      runtime: {
        reopenContainerLog: (id) => {
          this.reopened.push(id);
          if (this.reopenFails-- > 0) return Promise.reject(new Error("not now"));
          if (this.createsAndFails) this.files.sizes.set(LOG, 7);
          if (this.createsAndFails) return Promise.reject(new Error("timed out"));
          this.files.sizes.set(LOG, 0);
          return Promise.resolve();
        },
      },
    },
    this.options,
    this.stop.signal,
  );

  constructor() {
    this.files.sizes.set(LOG, 0);
  }

  async start(): Promise<this> {
    this.rotator.follow(RUNNING.uid, RUNNING);
    await this.clock.advance(20_000);
    return this;
  }

  end(): void {
    this.stop.abort();
  }

  rotated(): string[] {
    return [...this.files.sizes.keys()].filter((path) => path !== LOG).sort();
  }
}

describe("the rotator", () => {
  test("an idle log costs a watch, no timer and no check", async () => {
    const bench = await new Bench().start();
    const { checks } = bench.files;
    await bench.clock.advance(3_600_000);
    assert.equal(bench.files.checks, checks);
    assert.equal(bench.clock.waiting, 0);
    assert.deepEqual([...bench.files.watched.keys()], [LOG]);
    bench.end();
    assert.equal(bench.files.watched.size, 0);
  });

  test("a new log that nobody writes to is watched at once, without being opened", async () => {
    const bench = new Bench();
    let opens = 0;
    bench.files.open = () => {
      opens++;
      return Promise.resolve(undefined);
    };
    bench.rotator.follow(RUNNING.uid, RUNNING);
    await bench.clock.advance(0);
    assert.deepEqual([...bench.files.watched.keys()], [LOG]);
    // One before the watch, and one for what was written meanwhile.
    assert.deepEqual([bench.files.checks, opens], [2, 0]);
    bench.end();
  });

  test("a sudden writer of 20 MB/s exceeds the limit by less than a tenth", async () => {
    const bench = await new Bench().start();
    let largest = 0;
    for (let ms = 0; ms < 5000; ms += 10) {
      bench.files.write(LOG, 200_000);
      largest = Math.max(largest, bench.files.sizes.get(LOG) ?? 0);
      await bench.clock.advance(10);
    }
    bench.end();
    assert.ok(largest < 11 * MIB, `${largest} bytes`);
    assert.ok(bench.reopened.length >= 8, `${bench.reopened.length} rotations`);
    assert.equal(bench.rotated().length, 4, bench.rotated().join(" "));
    assert.equal(bench.rotated().filter((path) => path.endsWith(".gz")).length, 3);
  });

  test("a log that grows in bursts is not taken for idle between two of them", async () => {
    const bench = new Bench();
    bench.files.opened = [];
    await bench.start();
    const { checks } = bench.files;
    for (let ms = 0; ms < 9000; ms += 250) {
      bench.files.write(LOG, 280_000);
      await bench.clock.advance(250);
    }
    bench.end();
    // When the first burst begins, and when the file is opened anew after the interval.
    assert.ok(bench.files.checks - checks <= 2, `${bench.files.checks - checks} checks by the path`);
  });

  test("a growing log is measured by its descriptor, and by its path once an interval and after a rotation", async () => {
    const bench = new Bench();
    const opened: string[] = [];
    bench.files.opened = opened;
    await bench.start();
    assert.deepEqual(opened, [], "an idle log is not open");
    const { checks } = bench.files;
    let most = 0;
    for (let ms = 0; ms < 30_000; ms += 50) {
      bench.files.write(LOG, 50_000);
      await bench.clock.advance(50);
      most = Math.max(most, opened.length);
    }
    assert.equal(bench.reopened.length, 2);
    assert.equal(most, 1);
    assert.ok(bench.files.reads > 150, `${bench.files.reads} by descriptor`);
    assert.ok(bench.files.checks - checks < 10, `${bench.files.checks - checks} by path`);
    await bench.clock.advance(20_000);
    assert.deepEqual(opened, [], "it does not grow any more");
    bench.files.write(LOG, 50_000);
    await bench.clock.advance(100);
    assert.deepEqual(opened, [LOG]);
    bench.rotator.follow(RUNNING.uid, undefined);
    assert.deepEqual(opened, [], "its container has ended");
    bench.end();
  });

  test("a log that is removed while it is open is reopened by the runtime", async () => {
    const bench = new Bench();
    bench.files.opened = [];
    await bench.start();
    bench.files.write(LOG, 50_000);
    await bench.clock.advance(100);
    assert.deepEqual(bench.files.opened, [LOG]);
    bench.files.sizes.delete(LOG);
    await bench.clock.advance(1000);
    assert.equal(bench.reopened.length, 1);
    bench.end();
  });

  test("a container that ends while its log is being opened leaves nothing open", async () => {
    const bench = new Bench();
    const opened: string[] = [];
    bench.files.opened = opened;
    const open = bench.files.open.bind(bench.files);
    let isOpening = false;
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    bench.files.open = async (path) => {
      isOpening = true;
      await gate;
      return open(path);
    };
    bench.rotator.follow(RUNNING.uid, RUNNING);
    await bench.clock.advance(0);
    bench.files.write(LOG, 50_000);
    await bench.clock.advance(0);
    assert.ok(isOpening);
    bench.rotator.follow(RUNNING.uid, undefined);
    go();
    await bench.clock.advance(0);
    assert.deepEqual(opened, []);
    bench.end();
  });

  test("a log that the runtime does not reopen gets its name back and is tried again after the interval", async () => {
    const bench = await new Bench().start();
    bench.reopenFails = 1;
    bench.files.write(LOG, 11 * MIB);
    await bench.clock.advance(1000);
    assert.deepEqual(bench.rotated(), []);
    assert.equal(bench.files.sizes.get(LOG), 11 * MIB);
    assert.equal(bench.reopened.length, 1);
    await bench.clock.advance(10_000);
    assert.equal(bench.rotated().length, 1);
    bench.end();
  });

  test("a log that the runtime created although it failed stays, and so does the rotated one", async () => {
    const bench = await new Bench().start();
    bench.createsAndFails = true;
    // The new file appears after the agent has looked for it.
    bench.files.size = (path) =>
      Promise.resolve(bench.files.sizes.get(path) === 7 ? undefined : bench.files.sizes.get(path));
    bench.files.write(LOG, 11 * MIB);
    await bench.clock.advance(1000);
    assert.equal(bench.files.sizes.get(LOG), 7);
    assert.equal(bench.rotated().length, 1);
    bench.end();
  });

  test("a rotation that was interrupted before the reopening is finished by the next agent", async () => {
    const bench = new Bench();
    bench.files.sizes.delete(LOG);
    bench.files.sizes.set(`${LOG}.20261117-010000`, 5);
    await bench.start();
    assert.equal(bench.reopened.length, 1);
    bench.end();
  });

  test("a compression that was interrupted is finished by the next agent", async () => {
    const bench = new Bench();
    bench.files.sizes.set(`${LOG}.20261117-010000`, 5);
    bench.files.sizes.set(`${LOG}.20261117-010000.gz.tmp`, 5);
    bench.files.sizes.set(`${LOG}.20261117-020000`, 5);
    await bench.start();
    assert.deepEqual(bench.rotated(), [`${LOG}.20261117-010000.gz`, `${LOG}.20261117-020000`]);
    bench.end();
  });

  test("a container that ended is not followed any more", async () => {
    const bench = await new Bench().start();
    bench.rotator.follow(RUNNING.uid, observedPod([seen({ name: "app" }, { logPath: LOG, state: "exited" })]));
    assert.equal(bench.files.watched.size, 0);
    bench.rotator.follow(RUNNING.uid, undefined);
    bench.files.write(LOG, 20 * MIB);
    await bench.clock.advance(20_000);
    assert.deepEqual(bench.rotated(), []);
    bench.end();
  });

  test("a lower limit counts at once, a negative one turns rotation off and on again", async () => {
    const bench = await new Bench().start();
    bench.files.write(LOG, MIB);
    await bench.clock.advance(20_000);
    bench.options.set({ ...OPTIONS, maxBytes: MIB });
    await bench.clock.advance(10);
    assert.equal(bench.rotated().length, 1);
    bench.options.set({ ...OPTIONS, maxBytes: -1 });
    bench.files.write(LOG, 50 * MIB);
    await bench.clock.advance(60_000);
    assert.equal(bench.rotated().length, 1);
    bench.options.set(OPTIONS);
    await bench.clock.advance(1000);
    assert.equal(bench.rotated().length, 2);
    bench.end();
  });

  test("a limit that every log has reached is no busy loop", async () => {
    const bench = await new Bench().start();
    bench.options.set({ ...OPTIONS, maxBytes: 0 });
    await bench.clock.advance(100);
    assert.ok(bench.reopened.length <= 25, `${bench.reopened.length} rotations in 100 ms`);
    bench.end();
  });

  test("without watches the interval has to do", async () => {
    const bench = new Bench();
    bench.files.onceWritten = () => {
      throw new Error("ENOSPC");
    };
    await bench.start();
    bench.files.write(LOG, 11 * MIB);
    await bench.clock.advance(10_000);
    assert.equal(bench.rotated().length, 1);
    bench.end();
  });

  test("what is written just before the watch begins is noticed", async () => {
    const bench = new Bench();
    const watch = bench.files.onceWritten.bind(bench.files);
    bench.files.onceWritten = (path, callback) => {
      bench.files.onceWritten = watch;
      bench.files.write(path, 11 * MIB);
      return watch(path, callback);
    };
    await bench.start();
    assert.equal(bench.rotated().length, 1);
    bench.end();
  });

  test("the end of one pod does not concern the logs of others", async () => {
    const bench = await new Bench().start();
    bench.rotator.follow("another", undefined);
    bench.files.write(LOG, 11 * MIB);
    await bench.clock.advance(1000);
    assert.equal(bench.rotated().length, 1);
    bench.end();
  });

  test("a file that is being compressed is not compressed again by the next rotation", async () => {
    const bench = await new Bench().start();
    const begun: string[] = [];
    bench.files.compress = (path) => {
      begun.push(path);
      return new Promise(() => undefined);
    };
    bench.options.set({ ...OPTIONS, workers: 10 });
    for (let rotation = 0; rotation < 3; rotation++) {
      bench.files.write(LOG, 11 * MIB);
      await bench.clock.advance(2000);
    }
    assert.equal(bench.reopened.length, 3);
    assert.equal(begun.length, 2, begun.join(" "));
    assert.equal(new Set(begun).size, 2);
    bench.end();
  });

  test("a compression that failed is tried again by the next rotation", async () => {
    const bench = await new Bench().start();
    const compress = bench.files.compress.bind(bench.files);
    bench.files.compress = () => {
      bench.files.compress = compress;
      return Promise.reject(new Error("no space left on device"));
    };
    for (let rotation = 0; rotation < 3; rotation++) {
      bench.files.write(LOG, 11 * MIB);
      await bench.clock.advance(2000);
    }
    assert.deepEqual(
      bench.rotated().map((path) => path.endsWith(".gz")),
      [true, true, false],
    );
    bench.end();
  });
});
