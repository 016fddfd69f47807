import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { TtlCache } from "./ttl-cache.ts";

test("an entry is there until its time has passed, and is removed then", async () => {
  const clock = new FakeClock();
  const cache = new TtlCache<string>(clock, 2);
  cache.set("a", "1", 1000);
  await clock.advance(999);
  assert.equal(cache.get("a"), "1");
  await clock.advance(1);
  assert.deepEqual([cache.get("a"), cache.size], [undefined, 0]);
});

test("a full cache evicts the entry that was set first; setting one again makes it the newest", () => {
  const cache = new TtlCache<string>(new FakeClock(), 2);
  for (const key of ["a", "b", "a", "c"]) cache.set(key, key, 1000);
  assert.deepEqual(
    ["a", "b", "c"].map((key) => cache.get(key)),
    ["a", undefined, "c"],
  );
  assert.equal(cache.size, 2);
});

test("a time of 0 caches nothing, and evicts nothing", () => {
  const cache = new TtlCache<string>(new FakeClock(), 1);
  cache.set("a", "1", 1000);
  cache.set("b", "2", 0);
  assert.deepEqual([cache.get("a"), cache.get("b")], ["1", undefined]);
});
