import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClaimRecord } from "./claim-record.ts";
import { ClaimStore } from "./claim-store.ts";

function claim(name: string, ...pods: readonly string[]): ClaimRecord {
  const drivers = new Map([["gpu.example.com", []]]);
  return { uid: `uid-${name}`, name, namespace: "default", pods: new Set(pods), drivers, isPrepared: false };
}

test("a save resolves only when a write that is under way has its changes on disk", async () => {
  const writes: { readonly names: string; end(): void }[] = [];
  const store = new ClaimStore({
    load: () => [],
    save: (claims) =>
      new Promise((end) => {
        writes.push({ names: claims.map(({ name }) => name).join(), end });
      }),
  });
  store.use(claim("a"), "one");
  store.use(claim("b"), "two");
  let saved = 0;
  const all = [store.save(), store.save()].map((save) => save.then(() => void saved++));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([saved, writes.map(({ names }) => names)], [0, ["a,b"]]);
  writes[0]?.end();
  await Promise.all(all);
  assert.equal(writes.length, 1);
});

test("what is noted while a write is under way is written by the next one", async () => {
  const writes: { readonly names: string; end(): void }[] = [];
  const store = new ClaimStore({
    load: () => [],
    save: (claims) =>
      new Promise((end) => {
        writes.push({ names: claims.map(({ name }) => name).join(), end });
      }),
  });
  store.use(claim("a"), "one");
  const first = store.save();
  store.use(claim("b"), "two");
  let isSaved = false;
  const second = store.save().then(() => (isSaved = true));
  writes[0]?.end();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isSaved, false);
  assert.deepEqual(
    writes.map(({ names }) => names),
    ["a", "a,b"],
  );
  writes[1]?.end();
  await Promise.all([first, second]);
});

test("a claim that is used before the checkpoint could be read keeps the pods that it had there", async () => {
  let isBroken = true;
  let disk: readonly ClaimRecord[] = [claim("a", "old")];
  const store = new ClaimStore({
    load: () => {
      if (isBroken) throw new Error("EIO: i/o error");
      return disk;
    },
    save: (claims) => {
      disk = claims;
      return Promise.resolve();
    },
  });
  store.use(claim("a"), "new");
  await assert.rejects(store.save(), /EIO/);
  isBroken = false;
  await store.save();
  assert.deepEqual(disk[0]?.pods, new Set(["old", "new"]));
});

test("what could not be written is written by the next save", async () => {
  const faults = [new Error("no space left on device")];
  const disk: string[] = [];
  const store = new ClaimStore({
    load: () => [],
    save: (claims) => {
      const fault = faults.shift();
      if (fault !== undefined) return Promise.reject(fault);
      disk.push(claims.map(({ name }) => name).join());
      return Promise.resolve();
    },
  });
  store.use(claim("a"), "one");
  await assert.rejects(store.save(), /no space left/);
  for (let save = 0; save < 2; save++) await store.save();
  assert.deepEqual(disk, ["a"]);
});
