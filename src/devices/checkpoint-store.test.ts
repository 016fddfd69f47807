import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { decodeCheckpoint } from "./checkpoint.ts";
import { CheckpointStore } from "./checkpoint-store.ts";

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
