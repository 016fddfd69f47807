import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { decodeCheckpoint } from "./checkpoint.ts";
import { type CheckpointFile, CheckpointStore } from "./checkpoint-store.ts";

/** A store of a state that `change` changes, on a disk whose first writes fail. */
function storeOn({ faults }: { readonly faults: Error[] }) {
  const disk: (readonly string[])[] = [];
  let ids: readonly string[] = [];
  const store = new CheckpointStore({
    clock: new FakeClock(),
    log: silent,
    file: {
      readCheckpoint: () => undefined,
      writeCheckpoint: async (text) => {
        await Promise.resolve();
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        disk.push(decodeCheckpoint(text).registered.get("example.com/gpu") ?? []);
      },
      setAside: () => "aside",
    },
    state: () => ({ entries: [], registered: new Map([["example.com/gpu", ids]]) }),
    found: () => undefined,
  });
  const change = (id: string): Promise<void> => {
    ids = [...ids, id];
    return store.save();
  };
  return { store, disk, change };
}

test("a save that waits for one that fails is made all the same", async () => {
  const { store, disk, change } = storeOn({ faults: [new Error("no space left on device")] });
  const results = await Promise.allSettled([change("a"), change("b"), change("c")]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ["rejected", "fulfilled", "fulfilled"],
  );
  await store.save();
  assert.deepEqual(disk, [["a", "b", "c"]], "what is on disk already is not written again");
});

test("saves that are asked for during a write become one, with what is allocated by then", async () => {
  const { disk, change } = storeOn({ faults: [] });
  await Promise.all([change("a"), change("b"), change("c")]);
  await Promise.all([change("d"), change("e")]);
  assert.deepEqual(disk.at(-1), ["a", "b", "c", "d", "e"]);
  assert.ok(disk.length <= 4, `${disk.length} writes`);
});

/** A store on a file with these methods, and what it logged. */
function storeWith(file: Partial<CheckpointFile>) {
  const warnings: string[] = [];
  const store = new CheckpointStore({
    clock: new FakeClock(),
    log: { ...silent, warn: (message) => void warnings.push(message) },
    file: {
      readCheckpoint: () => undefined,
      writeCheckpoint: () => Promise.resolve(),
      setAside: () => "aside",
      ...file,
    },
    state: () => ({ entries: [], registered: new Map() }),
    found: () => assert.fail("nothing was found"),
  });
  return { store, warnings };
}

test("a damaged checkpoint is moved aside before another is written, and told", async () => {
  const calls: string[] = [];
  const { store, warnings } = storeWith({
    readCheckpoint: () => "{",
    writeCheckpoint: () => Promise.resolve(void calls.push("write")),
    setAside: () => {
      calls.push("aside");
      return "/plugins/kubelet_internal_checkpoint.corrupt";
    },
  });
  assert.equal(store.load(), undefined);
  await store.save();
  assert.deepEqual(calls, ["aside", "write"]);
  assert.deepEqual(warnings, ["Device checkpoint is damaged", "Moved damaged device checkpoint aside"]);
});

test("a damaged checkpoint that cannot be moved aside does not keep the agent from starting", async () => {
  const { store, warnings } = storeWith({
    readCheckpoint: () => "{",
    setAside: () => {
      throw new Error("EROFS: read-only file system");
    },
  });
  assert.equal(store.load(), undefined);
  await store.save();
  assert.deepEqual(warnings, ["Device checkpoint is damaged", "Failed to move damaged device checkpoint aside"]);
});

test("a checkpoint that could not be read, and is gone by now, keeps nothing from being saved", async () => {
  let isBroken = true;
  const written: string[] = [];
  const { store, warnings } = storeWith({
    readCheckpoint: () => {
      if (isBroken) throw new Error("EIO: i/o error");
      return undefined;
    },
    writeCheckpoint: (text) => Promise.resolve(void written.push(text)),
  });
  store.load();
  await assert.rejects(store.save(), /device checkpoint is unreadable: EIO/);
  isBroken = false;
  await store.save();
  assert.equal(written.length, 1);
  assert.deepEqual(warnings, ["Failed to read device checkpoint", "Failed to read device checkpoint"]);
});
