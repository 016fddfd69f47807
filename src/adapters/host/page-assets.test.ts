import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pageAssets } from "./page-assets.ts";

const dir = mkdtempSync(join(tmpdir(), "assets-"));
after(() => rmSync(dir, { recursive: true }));
mkdirSync(join(dir, "page"));
writeFileSync(join(dir, "secret.js"), "secret");
writeFileSync(join(dir, "page", "main-A.js"), "script");
writeFileSync(join(dir, "page", "main-A.js.gz"), "zipped");
writeFileSync(join(dir, "page", "notes.txt"), "notes");
const assets = pageAssets(join(dir, "page"));

test("a file of the page, compressed where the client takes it", async () => {
  const plain = await assets.read("main-A.js", { gzip: false });
  assert.deepEqual([plain?.type, String(plain?.bytes)], ["text/javascript; charset=utf-8", "script"]);
  const zipped = await assets.read("main-A.js", { gzip: true });
  assert.deepEqual([zipped?.isCompressed, String(zipped?.bytes)], [true, "zipped"]);
});

test("nothing outside the folder, and nothing of another type", async () => {
  for (const name of ["../secret.js", "..", "none.js", "notes.txt", "main-A.js.gz", "constructor", ""]) {
    assert.equal(await assets.read(name, { gzip: false }), undefined, name);
  }
});
