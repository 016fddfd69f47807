import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { hostLogFiles } from "./files.ts";

function directoryOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "objectlog-"));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test("a file that is missing is made, for its owner only; one that is there is kept as it is", async (t) => {
  const directory = directoryOf(t);
  const path = join(directory, "log");
  const made = await hostLogFiles.open(path);
  assert.deepEqual([modeOf(path), await made.size()], ["600", 0]);
  await made.write(Buffer.from("kept"), 0);
  await made.close();
  const again = await hostLogFiles.open(path);
  assert.equal(String(await again.read(0, 100)), "kept");
  await again.close();
  await assert.rejects(hostLogFiles.open(directory), { code: "EISDIR" });
});

test("bytes are written and read at their place; fewer are read only at the end", async (t) => {
  const path = join(directoryOf(t), "log");
  const file = await hostLogFiles.open(path);
  await file.write(Buffer.from("0123456789"), 0);
  await file.write(Buffer.from("abc"), 8);
  await file.sync();
  assert.equal(String(await file.read(7, 3)), "7ab");
  assert.equal(String(await file.read(9, 10)), "bc");
  assert.equal((await file.read(11, 10)).length, 0);
  await file.truncate(2);
  assert.equal(await file.size(), 2);
  await file.close();
  assert.equal(readFileSync(path, "utf8"), "01");
});

test("a small file is replaced as a whole, and only its owner reads it", async (t) => {
  const path = join(directoryOf(t), "key");
  assert.equal(await hostLogFiles.readSmall(path), undefined);
  await hostLogFiles.writeSmall(path, Buffer.from([0, 255]));
  assert.deepEqual([modeOf(path), await hostLogFiles.readSmall(path)], ["600", Buffer.from([0, 255])]);
  await assert.rejects(hostLogFiles.readSmall(join(path, "below")), { code: "ENOTDIR" });
});

test("a rename replaces, and removing what is missing is no error", async (t) => {
  const directory = directoryOf(t);
  const [from, to] = [join(directory, "from"), join(directory, "to")];
  writeFileSync(from, "new");
  writeFileSync(to, "old");
  await hostLogFiles.rename(from, to);
  await hostLogFiles.syncDirectory(directory);
  assert.equal(readFileSync(to, "utf8"), "new");
  await hostLogFiles.remove(to);
  await hostLogFiles.remove(to);
});
