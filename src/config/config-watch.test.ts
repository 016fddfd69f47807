import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import { ConfigWatch } from "./config-watch.ts";

/** A watch over files that the test changes; `read` stands for the reload. */
function watching(t: TestContext) {
  const clock = new FakeClock();
  const on = new LiveValue(true);
  const stamps = new Map([["/k.yaml", "1"]]);
  const listeners = new Map<string, () => void>();
  const site = { clock, on, stamps, listeners, places: ["/k.yaml"], reads: 0, onRead: (): void => undefined };
  const watch = new ConfigWatch(
    {
      clock,
      watch: async (path, { signal, onChange }) => {
        listeners.set(path, onChange);
        signal.addEventListener("abort", () => void listeners.delete(path));
      },
      stamp: async (path) => stamps.get(path),
      places: () => site.places,
      changed: async () => {
        site.reads++;
        site.onRead();
      },
    },
    on,
  );
  const stop = new AbortController();
  const run = watch.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await run;
    assert.deepEqual([...listeners], [], "no watch is left");
    assert.equal(clock.waiting, 0, "no timer is left");
  });
  return site;
}

test("a change is read once, 40 ms after the last of its burst", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  assert.equal(site.reads, 1, "once at the start: a change before the watch stood would be missed");
  site.stamps.set("/k.yaml", "2");
  for (let i = 0; i < 3; i++) {
    site.listeners.get("/k.yaml")?.();
    await site.clock.advance(30);
  }
  assert.equal(site.reads, 1);
  await site.clock.advance(10);
  assert.equal(site.reads, 2);
});

test("changes that never end are read within 200 ms", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  for (let i = 0; i < 11; i++) {
    site.stamps.set("/k.yaml", `x${i}`);
    site.listeners.get("/k.yaml")?.();
    await site.clock.advance(20);
  }
  assert.equal(site.reads, 2);
});

test("a change that touched nothing is not read", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  site.listeners.get("/k.yaml")?.();
  await site.clock.advance(1000);
  assert.equal(site.reads, 1);
});

test("a change that no watch tells is found by the look a minute later", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  site.stamps.delete("/k.yaml");
  await site.clock.advance(59_000);
  assert.equal(site.reads, 1);
  await site.clock.advance(2000);
  assert.equal(site.reads, 2);
});

test("a write during the reading is read again", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  site.onRead = () => {
    site.onRead = () => undefined;
    site.stamps.set("/k.yaml", "3");
    site.listeners.get("/k.yaml")?.();
  };
  site.stamps.set("/k.yaml", "2");
  site.listeners.get("/k.yaml")?.();
  await site.clock.advance(100);
  assert.equal(site.reads, 3);
});

test("places that came are watched, those that went no more", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  site.onRead = () => {
    site.places = ["/d"];
  };
  site.stamps.set("/k.yaml", "2");
  site.listeners.get("/k.yaml")?.();
  await site.clock.advance(100);
  assert.deepEqual([...site.listeners.keys()], ["/d"]);
});

test("switched off it watches and reads nothing, switched on it catches up", async (t) => {
  const site = watching(t);
  await site.clock.advance(1);
  site.on.set(false);
  await site.clock.advance(1);
  assert.equal(site.listeners.size, 0);
  site.stamps.set("/k.yaml", "2");
  await site.clock.advance(120_000);
  assert.equal(site.reads, 1);
  site.on.set(true);
  await site.clock.advance(1);
  assert.equal(site.reads, 2);
});
