import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { HostError } from "./host-error.ts";
import { type VolumeFile, writeVolume } from "./written-volume.ts";

let base = "";
let umask = 0;
before(() => {
  base = mkdtempSync(join(tmpdir(), "written-"));
  umask = process.umask(0o077);
});
after(() => {
  process.umask(umask);
  rmSync(base, { recursive: true, force: true });
});

const deps = { removeTree: async (path: string) => rmSync(path, { recursive: true, force: true }) };
const stamp = "2026_01_02_03_04_05";

function files(contents: Record<string, string>, mode = 0o644): ReadonlyMap<string, VolumeFile> {
  return new Map(Object.entries(contents).map(([path, text]) => [path, { bytes: Buffer.from(text), mode }]));
}

function volume(): string {
  const path = mkdtempSync(join(base, "v-"));
  return path;
}

/** Every file that a container would see, by its path. */
function seen(directory: string, below = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(directory, below))) {
    if (below === "" && name.startsWith("..")) continue;
    const path = join(below, name);
    if (statSync(join(directory, path)).isDirectory()) Object.assign(found, seen(directory, path));
    else found[path] = readFileSync(join(directory, path), "utf8");
  }
  return found;
}

describe("a written volume", () => {
  test("has the layout that programs know: one link to swap, one link a name", async () => {
    const directory = volume();
    assert.equal(await writeVolume(deps, directory, { files: files({ a: "1", "d/b": "2" }), stamp }), true);
    const data = readlinkSync(join(directory, "..data"));
    assert.match(data, /^\.\.2026_01_02_03_04_05\.[0-9a-f]{8}$/);
    assert.deepEqual(readdirSync(directory).sort(), ["..data", data, "a", "d"].sort());
    assert.equal(readlinkSync(join(directory, "a")), "..data/a");
    assert.equal(readlinkSync(join(directory, "d")), "..data/d");
    assert.deepEqual(seen(directory), { a: "1", "d/b": "2" });
  });

  test("has the requested modes, whatever the umask", async () => {
    const directory = volume();
    await writeVolume(deps, directory, {
      files: new Map([...files({ a: "" }, 0o640), ...files({ "d/b": "" }, 0o777)]),
      stamp,
    });
    const mode = (path: string): number => statSync(join(directory, path)).mode & 0o7777;
    assert.deepEqual([mode("a"), mode("d/b"), mode("d"), mode("..data")], [0o640, 0o777, 0o755, 0o755]);
  });

  test("is left unchanged if nothing changed", async () => {
    const directory = volume();
    await writeVolume(deps, directory, { files: files({ a: "1" }), stamp });
    const before = readdirSync(directory);
    assert.equal(await writeVolume(deps, directory, { files: files({ a: "1" }), stamp: "later" }), false);
    assert.deepEqual(readdirSync(directory), before);
  });

  const changes: [string, Record<string, string>, number?][] = [
    ["another value", { a: "2" }],
    ["a further key", { a: "1", b: "1" }],
    ["a key less", {}],
    ["a key that became a directory", { "a/b": "1" }],
    ["another mode", { a: "1" }, 0o600],
    ["an equal length", { a: "3" }],
  ];
  for (const [name, contents, mode] of changes) {
    test(`${name} replaces all of it and leaves nothing of before`, async () => {
      const directory = volume();
      await writeVolume(deps, directory, { files: files({ a: "1" }), stamp });
      assert.equal(await writeVolume(deps, directory, { files: files(contents, mode), stamp: "later" }), true);
      assert.deepEqual(seen(directory), contents);
      const tops = new Set(Object.keys(contents).map((path) => path.split("/")[0] ?? ""));
      assert.deepEqual(
        readdirSync(directory).sort(),
        ["..data", readlinkSync(join(directory, "..data")), ...tops].sort(),
      );
    });
  }

  test("an open directory of before goes on showing the whole of before until it is gone", async () => {
    const directory = volume();
    await writeVolume(deps, directory, { files: files({ a: "old", b: "old" }), stamp });
    let during: Record<string, string> = {};
    const watching = {
      removeTree: async (path: string) => {
        // The swap is done and the old content is about to go: all that is visible is new.
        during = seen(directory);
        return deps.removeTree(path);
      },
    };
    await writeVolume(watching, directory, { files: files({ a: "new", b: "new" }), stamp });
    assert.deepEqual(during, { a: "new", b: "new" });
  });

  test("the link that is swapped is always there, however often a reader looks", async () => {
    const directory = volume();
    await writeVolume(deps, directory, { files: files({ a: "0" }), stamp });
    const state = new Int32Array(new SharedArrayBuffer(12));
    const reader = new Worker(
      `const { workerData: { path, state } } = require("node:worker_threads");
       const { readlinkSync } = require("node:fs");
       while (Atomics.load(state, 0) === 0) {
         try { readlinkSync(path); Atomics.add(state, 1, 1); } catch { Atomics.add(state, 2, 1); }
       }`,
      { eval: true, workerData: { path: join(directory, "..data"), state } },
    );
    reader.on("error", () => undefined);
    const ended = new Promise((resolve) => reader.once("exit", resolve));
    await new Promise((resolve) => reader.once("online", resolve));
    const looks = (): number => Atomics.load(state, 1);
    const isEnough = (writes: number): boolean => writes >= 200 && looks() > 1000;
    for (let i = 1; !isEnough(i) && i < 5000; i++)
      await writeVolume(deps, directory, { files: files({ a: `${i}` }), stamp });
    Atomics.store(state, 0, 1);
    await ended;
    assert.ok(looks() > 1000, `${looks()} looks`);
    assert.equal(Atomics.load(state, 2), 0, "looks that found nothing");
  });

  test("a write that fails in the middle keeps the old content and leaves nothing new", async () => {
    const directory = volume();
    await writeVolume(deps, directory, { files: files({ a: "1" }), stamp });
    const before = readdirSync(directory);
    // A name longer than the kernel takes fails at its open, after others were written.
    const bad = files({ b: "2", c: "3", ["x".repeat(300)]: "4" });
    await assert.rejects(writeVolume(deps, directory, { files: bad, stamp }), HostError);
    assert.deepEqual(readdirSync(directory), before);
    assert.deepEqual(seen(directory), { a: "1" });
  });

  test("what a killed agent left behind is removed by the next write", async () => {
    const directory = volume();
    await writeVolume(deps, directory, { files: files({ a: "1" }), stamp });
    mkdirSync(join(directory, "..2026_01_01_00_00_00.deadbeef"));
    writeFileSync(join(directory, "..2026_01_01_00_00_00.deadbeef/half"), "");
    symlinkSync("..2026_01_01_00_00_00.deadbeef", join(directory, "..data_tmp"));
    rmSync(join(directory, "a"));
    symlinkSync("..data/gone", join(directory, "gone"));
    assert.equal(await writeVolume(deps, directory, { files: files({ a: "1" }), stamp }), false);
    assert.deepEqual(readdirSync(directory).sort(), ["..data", readlinkSync(join(directory, "..data")), "a"].sort());
    assert.deepEqual(seen(directory), { a: "1" });
  });

  test("what is neither a link nor of a write is not removed", async () => {
    const directory = volume();
    writeFileSync(join(directory, "foreign"), "keep");
    mkdirSync(join(directory, "folder"));
    await writeVolume(deps, directory, { files: files({ a: "1" }), stamp });
    assert.deepEqual(
      readdirSync(directory)
        .filter((name) => name.startsWith("fo"))
        .sort(),
      ["folder", "foreign"],
    );
  });

  test("a link that leads elsewhere is not taken for the content", async () => {
    const directory = volume();
    const outside = mkdtempSync(join(base, "outside-"));
    writeFileSync(join(outside, "a"), "1", { mode: 0o644 });
    symlinkSync(outside, join(directory, "..data"));
    await writeVolume(deps, directory, { files: files({ a: "1" }), stamp });
    assert.deepEqual(readdirSync(outside), ["a"]);
    assert.match(readlinkSync(join(directory, "..data")), /^\.\.2026/);
  });

  test("3,000 keys and 1 MiB are written, compared and replaced", async () => {
    // In memory, as most such volumes are: a busy disk takes seconds for so many files.
    const directory = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : base, "written-"));
    after(() => rmSync(directory, { recursive: true, force: true }));
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`key-${i}`, `value ${i}`]));
    await writeVolume(deps, directory, { files: files({ ...many, large: "x".repeat(1024 * 1024) }), stamp });
    assert.equal(Object.keys(seen(directory)).length, 3001);
    assert.equal(
      await writeVolume(deps, directory, { files: files({ ...many, large: "x".repeat(1024 * 1024) }), stamp }),
      false,
    );
    assert.equal(await writeVolume(deps, directory, { files: files({ ...many, large: "y" }), stamp }), true);
    assert.equal(readFileSync(join(directory, "large"), "utf8"), "y");
  });
});
