import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { chooseTreeAccess, ProcTreeAccess, type TreeAccess } from "./tree-access.ts";
import { walkTree } from "./tree-walk.ts";

const LEVELS = 250;
const accesses: [string, () => Promise<TreeAccess>][] = [
  ["chosen", chooseTreeAccess],
  ["without koffi", async () => new ProcTreeAccess()],
];

function place(t: TestContext): string {
  const root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "walk-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

/** Names of all entries, and the most descriptors that were open on the way. */
async function walked(access: TreeAccess, root: string): Promise<{ names: string[]; descriptors: number }> {
  const top = await access.openParent(root);
  const names: string[] = [];
  const open = (): number => readdirSync("/proc/self/fd").length;
  const before = open();
  let descriptors = 0;
  try {
    for await (const { name } of walkTree(access, top)) {
      names.push(name.toString());
      if (names.length % 10 === 0) descriptors = Math.max(descriptors, open() - before);
    }
  } finally {
    await top.close();
  }
  assert.ok(open() < before, "all are closed again");
  return { names, descriptors };
}

for (const [label, make] of accesses) {
  test(`${label}: a deep tree with something left on each level is walked whole, with few descriptors`, async (t) => {
    const root = place(t);
    const here = process.cwd();
    process.chdir(root);
    t.after(() => process.chdir(here));
    for (let level = 0; level < LEVELS; level++) {
      writeFileSync("a", "");
      mkdirSync("m/inside", { recursive: true });
      mkdirSync("z");
      writeFileSync("z/file", "");
      process.chdir("m");
    }
    process.chdir(here);
    const { names, descriptors } = await walked(await make(), root);
    assert.equal(names.length, LEVELS * 5);
    assert.ok(descriptors < 160, `${descriptors} descriptors`);
  });

  test(`${label}: a directory with more entries than are read at once is walked whole, each once`, async (t) => {
    const root = place(t);
    const wanted = Array.from({ length: 500 }, (_, at) => `f${at}`);
    for (const name of wanted) {
      if (name.endsWith("7")) mkdirSync(join(root, name));
      else writeFileSync(join(root, name), "");
    }
    const { names } = await walked(await make(), root);
    assert.deepEqual(names.sort(), wanted.sort());
  });
}

test("a level that is gone when the walk comes back to it is left out", async (t) => {
  const root = place(t);
  const access = await chooseTreeAccess();
  const deep = join(root, ...Array.from({ length: 200 }, () => "d"));
  mkdirSync(deep, { recursive: true });
  for (const part of ["x", "y"]) mkdirSync(join(root, ...Array.from({ length: 20 }, () => "d"), part));
  const top = await access.openParent(root);
  let seen = 0;
  for await (const { name } of walkTree(access, top)) {
    seen++;
    if (name.toString() === "d" && seen >= 195) rmSync(join(root, "d"), { recursive: true, force: true });
  }
  await top.close();
  assert.ok(seen >= 195);
});
