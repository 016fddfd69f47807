import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { SliceCleaner } from "./slice-cleaner.ts";

class Bench {
  readonly clock = new FakeClock();
  readonly deleted: string[] = [];
  readonly usable = new Set<string>();
  /** Drivers with slices; undefined before the node is registered. */
  published: readonly string[] | undefined = [];
  lists = 0;
  failures = 0;
  /** Of a deletion that does not fail. */
  answer = Promise.resolve();
  readonly stop = manyListeners();
  readonly cleaner = new SliceCleaner(
    {
      clock: this.clock,
      log: silent,
      isUsable: (driver) => this.usable.has(driver),
      api: {
        drivers: () => {
          this.lists++;
          return Promise.resolve(this.published);
        },
        deleteOf: (driver) => {
          if (this.failures-- > 0) return Promise.reject(new Error("no connection"));
          this.deleted.push(driver);
          return this.answer;
        },
      },
    },
    this.stop.signal,
  );
}

test("slices are deleted when their driver was unavailable for 30 s, not if it comes back before", async () => {
  const bench = new Bench();
  bench.cleaner.changed("a", false);
  bench.cleaner.changed("b", false);
  await bench.clock.advance(20_000);
  bench.cleaner.changed("a", true);
  bench.cleaner.changed("b", false);
  await bench.clock.advance(10_000);
  assert.deepEqual(bench.deleted, ["b"]);
  await bench.clock.advance(60_000);
  assert.deepEqual(bench.deleted, ["b"]);
  bench.cleaner.changed("a", false);
  await bench.clock.advance(30_000);
  assert.deepEqual(bench.deleted, ["b", "a"]);
});

test("a driver whose slices were deleted leaves no listener behind", async () => {
  const bench = new Bench();
  bench.cleaner.changed("a", false);
  await bench.clock.advance(30_000);
  bench.cleaner.changed("b", false);
  bench.cleaner.changed("b", true);
  await bench.clock.advance(0);
  assert.deepEqual([bench.deleted, getEventListeners(bench.stop.signal, "abort").length], [["a"], 0]);
});

test("a deletion that fails is repeated with back-off, and ends when the driver is back", async () => {
  const bench = new Bench();
  bench.failures = 3;
  bench.cleaner.changed("a", false);
  await bench.clock.advance(30_000 + 10_000);
  assert.deepEqual(bench.deleted, ["a"]);
  bench.failures = 1000;
  bench.cleaner.changed("a", true);
  bench.cleaner.changed("a", false);
  await bench.clock.advance(60_000);
  bench.cleaner.changed("a", true);
  bench.failures = 0;
  await bench.clock.advance(600_000);
  assert.deepEqual(bench.deleted, ["a"]);
});

test("at the start drivers have 30 s to register; slices of those that do not are deleted", async () => {
  const bench = new Bench();
  bench.published = ["late", "here", "gone"];
  bench.usable.add("here");
  void bench.cleaner.run(bench.stop.signal);
  await bench.clock.advance(29_999);
  assert.deepEqual(bench.deleted, []);
  bench.usable.add("late");
  await bench.clock.advance(1);
  assert.deepEqual(bench.deleted, ["gone"]);
});

test("slices of a driver that comes back while those of before the start are deleted are left alone", async () => {
  const bench = new Bench();
  bench.published = ["a"];
  bench.failures = 1000;
  void bench.cleaner.run(bench.stop.signal);
  await bench.clock.advance(31_000);
  bench.cleaner.changed("a", true);
  bench.failures = 0;
  await bench.clock.advance(600_000);
  assert.deepEqual(bench.deleted, []);
});

test("slices of a driver that is back are left alone, also if it was missed at the start and when it was lost", async () => {
  const bench = new Bench();
  bench.published = ["a"];
  bench.failures = 1000;
  bench.cleaner.changed("a", false);
  void bench.cleaner.run(bench.stop.signal);
  await bench.clock.advance(31_000);
  bench.cleaner.changed("a", true);
  bench.failures = 0;
  await bench.clock.advance(600_000);
  assert.deepEqual(bench.deleted, []);
});

test("slices of a driver that is back are left alone, also if an earlier deletion ended late", async () => {
  const bench = new Bench();
  let end = (): void => undefined;
  bench.answer = new Promise((resolve) => {
    end = resolve;
  });
  bench.cleaner.changed("a", false);
  await bench.clock.advance(30_000);
  assert.deepEqual(bench.deleted, ["a"]);
  for (const isUsable of [true, false]) bench.cleaner.changed("a", isUsable);
  end();
  await bench.clock.advance(1000);
  bench.cleaner.changed("a", true);
  await bench.clock.advance(60_000);
  assert.deepEqual(bench.deleted, ["a"]);
});

test("at the start slices are looked for until the node is known", async () => {
  const bench = new Bench();
  bench.published = undefined;
  void bench.cleaner.run(bench.stop.signal);
  await bench.clock.advance(40_000);
  bench.published = ["gone"];
  await bench.clock.advance(60_000);
  assert.deepEqual(bench.deleted, ["gone"]);
});

test("slices of a driver that was unavailable, registered and did not become usable are deleted once more", async () => {
  const bench = new Bench();
  for (let time = 0; time < 2; time++) {
    bench.cleaner.changed("a", false);
    await bench.clock.advance(30_000);
  }
  assert.deepEqual(bench.deleted, ["a", "a"]);
});

test("of thousands of drivers that are gone only those that have slices cost a call", async () => {
  const bench = new Bench();
  void bench.cleaner.run(bench.stop.signal);
  await bench.clock.advance(60_000);
  bench.published = ["here", "back", "gone"];
  bench.usable.add("here");
  const names = Array.from({ length: 5000 }, (_, at) => `new${at}`);
  for (const name of [...names, "back", "gone"]) bench.cleaner.changed(name, false);
  await bench.clock.advance(20_000);
  bench.usable.add("back");
  bench.cleaner.changed("back", true);
  await bench.clock.advance(10_000);
  assert.deepEqual(bench.deleted.slice(20), ["gone"]);
  assert.deepEqual([bench.deleted.length, bench.lists], [21, 2]);
});

test("while drivers come and go by thousands, lists are 30 s apart, and each driver has its 30 s to come back", async () => {
  const bench = new Bench();
  void bench.cleaner.run(bench.stop.signal);
  await bench.clock.advance(60_000);
  for (let second = 0; second < 100; second++) {
    for (let at = 0; at < 50; at++) bench.cleaner.changed(`new${second}-${at}`, false);
    if (second === 50) {
      bench.published = ["gone"];
      bench.cleaner.changed("gone", false);
    }
    await bench.clock.advance(1000);
    if (second < 80) assert.ok(!bench.deleted.includes("gone"), `${second}`);
  }
  await bench.clock.advance(15_000);
  assert.ok(bench.deleted.includes("gone"));
  assert.ok(bench.lists <= 6, `${bench.lists}`);
  assert.ok(bench.deleted.length <= 100, `${bench.deleted.length}`);
});
