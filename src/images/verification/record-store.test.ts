import assert from "node:assert/strict";
import { test } from "node:test";
import { silent } from "../../lib/log.ts";
import { encodeRecord, recordFileName } from "./record-format.ts";
import { RecordStore } from "./record-store.ts";

test("a record that cannot be read at the start is not taken for one that does not exist", async () => {
  const ref = "sha256:1";
  const known = new Map([[recordFileName(ref), encodeRecord({ imageRef: ref, updatedAt: 1e12, access: new Map() })]]);
  let failure: Error | undefined = new Error("EIO: i/o error");
  const store = new RecordStore(
    {
      files: {
        names: async (directory) => (directory.endsWith("pulled") ? [...known.keys()] : []),
        read: async (path) => {
          if (failure !== undefined) throw failure;
          return known.get(path.slice(path.lastIndexOf("/") + 1));
        },
        write: async () => undefined,
        remove: async () => undefined,
      },
      log: silent,
    },
    "/root",
  );
  assert.deepEqual((await store.load()).records, []);
  await assert.rejects(store.record(ref), /EIO/);
  failure = undefined;
  assert.equal((await store.record(ref))?.imageRef, ref);
});
