import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { watchOpened } from "./file-opened.ts";

test("an open of the file is reported once, one of another file is not", async () => {
  const dir = mkdtempSync(join(tmpdir(), "opened-"));
  const stop = manyListeners();
  try {
    for (const name of ["lock", "other"]) writeFileSync(join(dir, name), "");
    let told = 0;
    const heard = new Promise<void>((resolve) => {
      void watchOpened(
        join(dir, "lock"),
        () => {
          told++;
          resolve();
        },
        stop,
      ).then(() => {
        readFileSync(join(dir, "other"));
        assert.equal(told, 0);
        readFileSync(join(dir, "lock"));
      });
    });
    await heard;
    readFileSync(join(dir, "lock"));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(told, 1);
  } finally {
    stop.abort();
    rmSync(dir, { recursive: true });
  }
});
