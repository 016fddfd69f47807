import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { pullRecordFiles } from "../../adapters/host/pull-record-files.ts";
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

test("records are listed while another one is being written", async (t) => {
  const rootDir = mkdtempSync(join(tmpdir(), "records-"));
  t.after(() => rmSync(rootDir, { recursive: true }));
  const opened = { isSlow: false, store: undefined as RecordStore | undefined };
  const files = {
    ...pullRecordFiles,
    // As far as the file that is renamed in the end.
    write: async (path: string, text: string): Promise<void> => {
      if (!opened.isSlow) return pullRecordFiles.write(path, text);
      const temporary = join(dirname(path), `.${basename(path)}.1.1.tmp`);
      writeFileSync(temporary, text);
      await opened.store?.listRecords();
      renameSync(temporary, path);
    },
  };
  const store = new RecordStore({ files, log: silent }, rootDir);
  opened.store = store;
  await store.load();
  const record = (imageRef: string) => () => ({ imageRef, updatedAt: 1e12, access: new Map() });
  await store.update("sha256:1", record("sha256:1"));
  opened.isSlow = true;
  await store.update("sha256:2", record("sha256:2"));
  const listed = (await store.listRecords()).map(({ imageRef }) => imageRef);
  assert.deepEqual(listed.sort(), ["sha256:1", "sha256:2"]);
});

test("a record in the file of another image is none of it", async () => {
  const other = encodeRecord({ imageRef: "sha256:2", updatedAt: 1e12, access: new Map() });
  const files = {
    names: async () => [],
    read: async () => other,
    write: async () => undefined,
    remove: async () => undefined,
  };
  const store = new RecordStore({ files, log: silent }, "/root");
  assert.equal(await store.record("sha256:1"), undefined);
  assert.equal((await store.record("sha256:2"))?.imageRef, "sha256:2");
});
