import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SystemClock } from "../../lib/clock.ts";
import { type TreeUsage, UsageWalk } from "./disk-usage.ts";
import { chooseTreeAccess } from "./tree-access.ts";

const MI = 2 ** 20;

function place(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), "usage-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

async function usageOf(path: string, { mostLinked }: { mostLinked?: number } = {}): Promise<TreeUsage> {
  const deps = { access: await chooseTreeAccess(), clock: new SystemClock() };
  const walk = new UsageWalk({ ...deps, ...(mostLinked !== undefined && { mostLinked }) }, path);
  try {
    for (;;) {
      const usage = await walk.advance(1000);
      if (usage !== undefined) return usage;
    }
  } finally {
    await walk.close();
  }
}

/** As `du` counts; names with any bytes, whatever the locale is. */
function du(path: string): TreeUsage {
  const numbers = (option: string): number =>
    Number(execFileSync("du", ["-sx", option, path], { encoding: "latin1" }).split("\t")[0]);
  return { bytes: numbers("--block-size=1"), inodes: numbers("--inodes") };
}

test("a file with a hole counts with what is allocated, not with its length", async (t) => {
  const root = place(t);
  writeFileSync(join(root, "sparse"), "");
  truncateSync(join(root, "sparse"), 1024 * MI);
  execFileSync("dd", [
    "if=/dev/zero",
    `of=${root}/sparse`,
    "bs=1M",
    "count=2",
    "seek=100",
    "conv=notrunc",
    "status=none",
  ]);
  const { bytes } = await usageOf(root);
  assert.ok(bytes >= 2 * MI && bytes < 3 * MI, `${bytes} bytes`);
});

test("a file with many names counts once, also past the number of files that are remembered", async (t) => {
  const root = place(t);
  mkdirSync(join(root, "b"));
  for (let file = 0; file < 8; file++) {
    writeFileSync(join(root, `f${file}`), Buffer.alloc(64 * 1024, 1));
    for (let name = 0; name < 5; name++) linkSync(join(root, `f${file}`), join(root, "b", `${file}-${name}`));
  }
  const want = du(root);
  assert.deepEqual(await usageOf(root), want);
  assert.deepEqual(await usageOf(root, { mostLinked: 3 }), want);
  assert.deepEqual(await usageOf(root, { mostLinked: 0 }), want);
});

test("pipes, sockets, links in a circle and names of any bytes are counted and not opened", async (t) => {
  const root = place(t);
  const inside = join(root, "in\nside");
  mkdirSync(inside);
  execFileSync("mkfifo", [join(inside, "pipe")]);
  const server = createServer().listen(join(root, "socket"));
  t.after(() => server.close());
  symlinkSync(".", join(inside, "loop"));
  symlinkSync("/", join(inside, "out"));
  writeFileSync(Buffer.concat([Buffer.from(`${inside}/`), Buffer.from([0xff, 0x0a, 0xfe])]), "x");
  writeFileSync(join(inside, "-rf *"), "x");
  await new Promise((resolve) => server.once("listening", resolve));
  assert.deepEqual(await usageOf(root), du(root));
});

test("what is removed while it is walked costs nothing and no descriptor", async (t) => {
  const root = place(t);
  for (let at = 0; at < 300; at++) {
    mkdirSync(join(root, `d${at}`));
    writeFileSync(join(root, `d${at}`, "f"), "x");
  }
  const before = readdirSync("/proc/self/fd").length;
  const walk = new UsageWalk({ access: await chooseTreeAccess(), clock: new SystemClock() }, root);
  await walk.advance(1);
  for (let at = 0; at < 300; at++) {
    unlinkSync(join(root, `d${at}`, "f"));
    rmSync(join(root, `d${at}`), { recursive: true });
  }
  let usage: TreeUsage | undefined;
  while (usage === undefined) usage = await walk.advance(1000);
  await walk.close();
  assert.ok(usage.inodes <= 601);
  assert.ok(readdirSync("/proc/self/fd").length <= before);
});

test("a tree that is not there takes nothing, and a plain file its own", async (t) => {
  const root = place(t);
  assert.deepEqual(await usageOf(join(root, "absent")), { bytes: 0, inodes: 0 });
  writeFileSync(join(root, "file"), Buffer.alloc(8192, 1));
  assert.deepEqual(await usageOf(join(root, "file")), du(join(root, "file")));
});
