import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../../test/support/mount-namespace.ts";
import { SystemClock } from "../../lib/clock.ts";
import { changeGroup } from "./group.ts";
import { HostError, LinuxHost } from "./index.ts";
import { readMountTable } from "./mount-table.ts";
import { chooseTreeAccess, ProcTreeAccess } from "./tree-access.ts";
import { LinuxVolumeHost } from "./volume-host.ts";

// Everything is mounted in a namespace of its own, which goes with the process, whatever happens.
/** A container that swaps links as fast as it can has this many chances. */
const RACES = Number(process.env["KUBELET_TEST_RACES"] ?? 10_000);

if (mountNamespace() === undefined) {
  test("volumes in a mount namespace of their own", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

/** How tsx loads itself; the flags of a test runner must not go along. */
interface Scene {
  readonly base: string;
  readonly volume: string;
  /** A user's data, which no pod may reach. */
  readonly outside: string;
  readonly target: string;
}

async function within(work: (scene: Scene) => Promise<void> | void): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "volume-"));
  execFileSync("mount", ["-t", "tmpfs", "tmpfs", base]);
  const scene = {
    base,
    volume: join(base, "volume"),
    outside: join(base, "outside"),
    target: join(base, "subpaths/v/c/0"),
  };
  mkdirSync(scene.volume);
  mkdirSync(join(scene.outside, "deep"), { recursive: true });
  writeFileSync(join(scene.outside, "precious"), "keep");
  writeFileSync(join(scene.outside, "deep/precious"), "keep");
  try {
    await work(scene);
    assert.equal(readFileSync(join(scene.outside, "precious"), "utf8"), "keep");
    assert.deepEqual(readdirSync(scene.outside), ["deep", "precious"]);
  } finally {
    const targets = readMountTable().map(({ target }) => target);
    for (const target of targets.reverse()) if (target.startsWith(base)) execFileSync("umount", ["--lazy", target]);
    rmSync(base, { recursive: true });
  }
}

/** A process that swaps two names in the volume for ever, as a container could. */
async function swapping(script: string, work: () => Promise<void>): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    await work();
    assert.equal(child.exitCode, null, "it swapped to the end");
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

function defineTests(): void {
  const clock = new SystemClock();
  const host = new LinuxVolumeHost(new LinuxHost({ clock }), clock);

  test("a subPath shows what is in the volume, directory or file, through links that stay inside", () =>
    within(async ({ volume, target }) => {
      mkdirSync(join(volume, "real/deep"), { recursive: true });
      writeFileSync(join(volume, "real/deep/file"), "inside");
      symlinkSync("real", join(volume, "link"));
      symlinkSync("../real/deep/file", join(volume, "real/up"));
      await host.bindSubPath({ root: volume, subPath: "link/deep", target });
      assert.equal(readFileSync(join(target, "file"), "utf8"), "inside");
      await host.bindSubPath({ root: volume, subPath: "link/up", target: `${target}1` });
      assert.equal(readFileSync(`${target}1`, "utf8"), "inside");
    }));

  test("what is missing is made with the mode of the volume, whatever the umask is", () =>
    within(async ({ volume, target }) => {
      chmodSync(volume, 0o2775);
      const umask = process.umask(0o077);
      try {
        await host.bindSubPath({ root: volume, subPath: "a b/ü/c", target });
      } finally {
        process.umask(umask);
      }
      for (const path of ["a b", "a b/ü", "a b/ü/c"]) assert.equal(statSync(join(volume, path)).mode & 0o7777, 0o2775);
      assert.equal(statSync(target).ino, statSync(join(volume, "a b/ü/c")).ino);
    }));

  test("repeated it is mounted once; another thing under the name replaces it", () =>
    within(async ({ volume, target }) => {
      const request = { root: volume, subPath: "data", target };
      const layers = (): number => readMountTable().filter((entry) => entry.target === target).length;
      await host.bindSubPath(request);
      await host.bindSubPath(request);
      assert.equal(layers(), 1);
      renameSync(join(volume, "data"), join(volume, "old"));
      writeFileSync(join(volume, "data"), "a file now");
      await host.bindSubPath(request);
      assert.equal(layers(), 1);
      assert.equal(readFileSync(target, "utf8"), "a file now");
    }));

  const escapes: [string, (scene: Scene) => string][] = [
    ["an absolute path", ({ outside }) => outside],
    ["..", () => "../outside"],
    [".. in the middle", () => "a/../../outside"],
    ["a NUL character", () => "a\0b"],
    ["an absolute link", ({ volume, outside }) => (symlinkSync(outside, join(volume, "out")), "out")],
    ["a relative link out", ({ volume }) => (symlinkSync("../outside", join(volume, "out")), "out/deep")],
    [
      "a link to a link out",
      ({ volume }) => (symlinkSync("b", join(volume, "a")), symlinkSync("/", join(volume, "b")), "a/etc"),
    ],
    [
      "a missing directory behind a link out",
      ({ volume }) => (symlinkSync("../outside", join(volume, "out")), "out/new"),
    ],
    ["a magic link", ({ volume }) => (symlinkSync("/proc/self/root", join(volume, "root")), "root/etc")],
    ["a dangling link out", ({ volume }) => (symlinkSync("../outside/new", join(volume, "out")), "out")],
  ];
  for (const [name, prepare] of escapes) {
    test(`a subPath that leaves the volume by ${name} is refused`, () =>
      within(async (scene) => {
        const subPath = prepare(scene);
        await assert.rejects(host.bindSubPath({ root: scene.volume, subPath, target: scene.target }), HostError);
        assert.equal(
          readMountTable().some(({ target }) => target === scene.target),
          false,
        );
      }));
  }

  const swaps: [string, number, string][] = [
    [
      "a link that is turned in and out",
      RACES,
      `for (let i = 0; ; i++) { symlinkSync(i % 2 ? "real" : OUTSIDE, "next"); renameSync("next", "data"); }`,
    ],
    [
      "a directory that is exchanged with a link out",
      Math.ceil(RACES / 5),
      // In a circle of names. While "data" is missing the agent may make it: that is moved away.
      `const aside = (name) => { try { renameSync(name, "junk-" + process.hrtime.bigint()); } catch {} };
       const move = (from, to) => { for (let i = 0; ; i++) try { return renameSync(from, to); } catch (error) { if (i > 1000) throw error; aside(to); } };
       unlinkSync("data"); renameSync("real", "data"); symlinkSync(OUTSIDE, "link");
       for (;;) { move("data", "real"); move("link", "data"); move("data", "link"); move("real", "data"); }`,
    ],
  ];
  for (const [name, races, loop] of swaps) {
    test(`${name} while it is mounted ${races} times never shows anything outside`, { timeout: 600_000 }, () =>
      within(async ({ volume, outside, target }) => {
        mkdirSync(join(volume, "real/deep"), { recursive: true });
        symlinkSync("real", join(volume, "data"));
        const script = `const { renameSync, symlinkSync, unlinkSync } = require("fs");
          const OUTSIDE = ${JSON.stringify(outside)}; process.chdir(${JSON.stringify(volume)}); console.log("go");\n${loop}`;
        const seen = { inside: 0, refused: 0 };
        await swapping(script, async () => {
          for (let i = 0; i < races; i++) {
            const subPath = ["data/deep", "data", "data/made/here"][i % 3] ?? "";
            try {
              await host.bindSubPath({ root: volume, subPath, target });
            } catch (error) {
              if (!(error instanceof HostError)) throw error;
              seen.refused++;
              continue;
            }
            const names = readdirSync(target);
            assert.ok(!names.includes("precious"), `attempt ${i} shows ${names}`);
            seen.inside++;
            await host.unmount(target);
          }
        });
        assert.deepEqual(readdirSync(outside), ["deep", "precious"], "nothing was made outside");
        assert.deepEqual(readdirSync(join(outside, "deep")), ["precious"]);
        assert.ok(seen.inside > races / 20 && seen.refused > 0, `the race took place: ${JSON.stringify(seen)}`);
      }),
    );
  }

  for (const [name, access] of [
    ["by openat2", chooseTreeAccess()],
    ["without it", Promise.resolve(new ProcTreeAccess())],
  ] as const) {
    const give = async (path: string, gid: number, onlyOnMismatch = false): Promise<void> =>
      changeGroup({ access: await access }, path, { gid, onlyOnMismatch });

    test(`a volume is given to a group: bits, links, and nothing outside (${name})`, () =>
      within(async ({ volume, outside }) => {
        mkdirSync(join(volume, "d"), { mode: 0o700 });
        writeFileSync(join(volume, "d/f"), "", { mode: 0o600 });
        writeFileSync(join(volume, "run"), "", { mode: 0o4711 });
        symlinkSync(outside, join(volume, "out"));
        await give(volume, 777);
        const facts = (path: string): number[] => {
          const { gid, mode } = lstatSync(join(volume, path));
          return [gid, mode & 0o7777];
        };
        assert.deepEqual(
          [facts("."), facts("d")],
          [
            [777, 0o2775],
            [777, 0o2770],
          ],
        );
        assert.deepEqual(
          [facts("d/f"), facts("run")],
          [
            [777, 0o660],
            [777, 0o4771],
          ],
        );
        assert.equal(lstatSync(join(volume, "out")).gid, 777);
        assert.equal(statSync(outside).gid, 0);
      }));

    test(`OnRootMismatch looks only at the top, which is changed last (${name})`, () =>
      within(async ({ volume }) => {
        writeFileSync(join(volume, "f"), "");
        await give(volume, 777);
        writeFileSync(join(volume, "late"), "", { mode: 0o600 });
        execFileSync("chgrp", ["0", join(volume, "late")]);
        await give(volume, 777, true);
        assert.equal(statSync(join(volume, "late")).gid, 0);
        await give(volume, 777);
        assert.equal(statSync(join(volume, "late")).gid, 777);
      }));

    test(`what is mounted in a volume keeps its group, directory or file (${name})`, () =>
      within(async ({ volume, outside }) => {
        mkdirSync(join(volume, "bound"));
        writeFileSync(join(volume, "file"), "");
        execFileSync("mount", ["--bind", outside, join(volume, "bound")]);
        execFileSync("mount", ["--bind", join(outside, "precious"), join(volume, "file")]);
        await give(volume, 777);
        for (const path of [outside, join(outside, "precious"), join(outside, "deep/precious")]) {
          assert.equal(statSync(path).gid, 0, path);
        }
        assert.equal(statSync(volume).gid, 777);
      }));
  }

  test("a large tree is given to a group while the event loop runs on, with progress; cut off it begins anew", () =>
    within(async ({ volume }) => {
      const count = 20_000;
      for (let i = 0; i < count / 100; i++) {
        mkdirSync(join(volume, `d${i}`), { mode: 0o700 });
        for (let j = 0; j < 99; j++) writeFileSync(join(volume, `d${i}/f${j}`), "", { mode: 0o600 });
      }
      const cut = new AbortController();
      const told: number[] = [];
      const onProgress = (entries: number): void => {
        told.push(entries);
        if (entries >= 5000) cut.abort(new Error("the agent stops"));
      };
      const request = { gid: 4242, onlyOnMismatch: true };
      await assert.rejects(host.changeGroup(volume, { ...request, signal: cut.signal, onProgress }), /the agent stops/);
      assert.deepEqual(told, [1000, 2000, 3000, 4000, 5000]);
      assert.notEqual(statSync(volume).gid, 4242, "the top is changed last");
      const delay = monitorEventLoopDelay({ resolution: 5 });
      delay.enable();
      told.length = 0;
      await host.changeGroup(volume, { ...request, onProgress: (entries) => void told.push(entries) });
      delay.disable();
      assert.equal(await host.groupOf(volume), request.gid);
      assert.equal(told.length, count / 1000);
      // Not the longest: on a busy machine the process itself may have to wait. A walk that blocks is one long sample.
      const usual = delay.percentile(90) / 1e6;
      assert.ok(delay.count > 20 && usual < 100, `the loop stood still for ${usual} ms, ${delay.count} looks`);
      for (const path of [".", "d0", "d199"]) assert.equal(statSync(join(volume, path)).mode & 0o2070, 0o2070, path);
      for (const path of ["d0/f0", "d199/f98"]) {
        const { gid, mode } = statSync(join(volume, path));
        assert.deepEqual([gid, mode & 0o777], [4242, 0o660], path);
      }
      const took: number[] = [];
      for (let turn = 0; turn < 5 && !took.some((ms) => ms < 100); turn++) {
        const began = performance.now();
        await host.changeGroup(volume, request);
        took.push(performance.now() - began);
      }
      assert.ok(Math.min(...took) < 100, `one that is done is looked at and left, not after ${took.join(", ")} ms`);
    }));

  test("what another user owns, closed to everybody, is mounted in part and removed, and stays theirs until then", () =>
    within(async ({ volume, target, base }) => {
      mkdirSync(join(volume, "theirs/deep"), { recursive: true });
      writeFileSync(join(volume, "theirs/deep/file"), "x", { mode: 0o000 });
      execFileSync("chown", ["-R", "1234:5678", join(volume, "theirs")]);
      for (const path of ["theirs/deep", "theirs"]) chmodSync(join(volume, path), 0o000);
      await host.bindSubPath({ root: volume, subPath: "theirs/deep", target });
      assert.deepEqual([statSync(target).uid, statSync(target).gid], [1234, 5678]);
      await host.unmount(target);
      await host.removeTree(volume);
      assert.equal(existsSync(volume), false);
      assert.ok(existsSync(base));
    }));

  test("a walk that gives a group does not leave the volume while links are swapped", { timeout: 120_000 }, () =>
    within(async ({ volume, outside }) => {
      for (let i = 0; i < 20; i++) mkdirSync(join(volume, `data/d${i}`), { recursive: true });
      symlinkSync(outside, join(volume, "link"));
      const script = `
        const { renameSync } = require("fs"); process.chdir(${JSON.stringify(volume)}); console.log("go");
        for (;;) { renameSync("data", "x"); renameSync("link", "data"); renameSync("data", "link"); renameSync("x", "data"); }`;
      await swapping(script, async () => {
        for (let round = 0; round < 100; round++)
          await host.changeGroup(volume, { gid: 1000 + round, onlyOnMismatch: false });
      });
      for (const path of [outside, join(outside, "deep"), join(outside, "precious")])
        assert.equal(statSync(path).gid, 0);
    }),
  );

  test("usage counts what is allocated, a file once, and nothing that is mounted, in steps", () =>
    within(async ({ volume, outside }) => {
      mkdirSync(join(volume, "d/bound"), { recursive: true });
      writeFileSync(join(volume, "d/big"), Buffer.alloc(1 << 20));
      linkSync(join(volume, "d/big"), join(volume, "again"));
      symlinkSync(outside, join(volume, "out"));
      writeFileSync(join(outside, "precious"), Buffer.alloc(8 << 20));
      execFileSync("mount", ["--bind", outside, join(volume, "d/bound")]);
      const walk = await host.measure(volume);
      let usage: Awaited<ReturnType<typeof walk.advance>>;
      let steps = 0;
      while ((usage = await walk.advance(0.01)) === undefined) steps++;
      assert.ok(steps > 0, "it was cut into steps");
      assert.equal(usage.bytes, 1 << 20);
      assert.equal(usage.inodes, 4);
      writeFileSync(join(outside, "precious"), "keep");
    }));

  test(
    "a filesystem that never answers, mounted in a volume, stops neither measuring nor a group",
    { timeout: 60_000, skip: !existsSync("/dev/fuse") && "no FUSE here" },
    () =>
      within(async ({ volume }) => {
        const hung = join(volume, "hung");
        mkdirSync(hung);
        writeFileSync(join(volume, "file"), Buffer.alloc(8192));
        // A FUSE server that reads no request.
        const server = openSync("/dev/fuse", "r+");
        const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
        const stdio = ["ignore", "inherit", "inherit", server] as const;
        execFileSync("mount", ["-i", "-t", "fuse", "-o", options, "silent", hung], { stdio: [...stdio] });
        try {
          const walk = await host.measure(volume);
          assert.equal((await walk.advance(5000))?.bytes, 8192);
          await host.changeGroup(volume, { gid: 4242, onlyOnMismatch: false });
          assert.equal(statSync(join(volume, "file")).gid, 4242);
          await assert.rejects(host.removeTree(volume), /mounted/);
        } finally {
          execFileSync("umount", ["--lazy", hung]);
          closeSync(server);
        }
      }),
  );

  test("a filesystem of its own reports its usage, and none before it is mounted and after it is unmounted", () =>
    within(async ({ base }) => {
      const directory = join(base, "memory");
      const none = { bytes: 0, inodes: 0 };
      assert.deepEqual(await host.filesystemUsage(directory), none);
      mkdirSync(directory);
      assert.deepEqual(await host.filesystemUsage(directory), none, "it is not the filesystem below that is asked");
      await host.mountTmpfs(directory, { sizeBytes: 1 << 20, mode: 0o777 });
      writeFileSync(join(directory, "file"), Buffer.alloc(10_000));
      assert.deepEqual(await host.filesystemUsage(directory), { bytes: 12_288, inodes: 2 });
    }));

  test("a mount is distinguished from a directory, also one of the same filesystem, a file, and a missing path", () =>
    within(async ({ base }) => {
      for (const name of ["plain", "memory", "bound"]) mkdirSync(join(base, name));
      writeFileSync(join(base, "file"), "");
      symlinkSync("memory", join(base, "link"));
      await host.mountTmpfs(join(base, "memory"), { mode: 0o777 });
      await host.bindMount(join(base, "plain"), join(base, "bound"));
      await host.bindMount(join(base, "file"), join(base, "file"));
      const found = ["plain", "memory", "bound", "file", "link", "missing"].map((name) =>
        host.isMountPoint(join(base, name)),
      );
      assert.deepEqual(await Promise.all(found), [false, true, true, true, false, false]);
    }));

  test("a full disk in the middle of a write keeps the old content, and nothing of the new", () =>
    within(async ({ base }) => {
      const directory = join(base, "small");
      mkdirSync(directory);
      await host.mountTmpfs(directory, { sizeBytes: 64 * 1024, mode: 0o777 });
      const files = (size: number): Map<string, { bytes: Uint8Array; mode: number }> =>
        new Map(["a", "b", "c"].map((name) => [name, { bytes: Buffer.alloc(size, name), mode: 0o644 }]));
      await host.writeFiles(directory, { files: files(4096), stamp: "1" });
      const before = readdirSync(directory);
      await assert.rejects(
        host.writeFiles(directory, { files: files(40_000), stamp: "2" }),
        (error: HostError) => error.code === "NoSpace",
      );
      assert.deepEqual(readdirSync(directory), before);
      assert.equal(readFileSync(join(directory, "c"), "utf8"), "c".repeat(4096));
      await host.writeFiles(directory, { files: files(1000), stamp: "3" });
      assert.equal(readFileSync(join(directory, "c"), "utf8"), "c".repeat(1000));
    }));

  test("a written file belongs to the user and the group that it is for", () =>
    within(async ({ volume }) => {
      const files = new Map([
        ["token", { bytes: Buffer.from("t"), mode: 0o600, uid: 1234 }],
        ["other", { bytes: Buffer.from("o"), mode: 0o600 }],
      ]);
      const owner = (name: string): number[] => {
        const { uid, gid, mode } = statSync(join(volume, name));
        return [uid, gid, mode & 0o777];
      };
      await host.writeFiles(volume, { files, stamp: "1" });
      assert.deepEqual(
        [owner("token"), owner("other")],
        [
          [1234, 0, 0o600],
          [0, 0, 0o600],
        ],
      );
      await host.writeFiles(volume, { files, stamp: "2", gid: 5678 });
      assert.deepEqual(
        [owner("token"), owner("other")],
        [
          [1234, 5678, 0o640],
          [0, 5678, 0o640],
        ],
      );
    }));

  test("mounts below a path are listed, also through a link on the way and with blanks in their names", () =>
    within(async ({ base, volume }) => {
      mkdirSync(join(volume, "a b"));
      await host.mountTmpfs(join(volume, "a b"), { mode: 0o700 });
      symlinkSync(volume, join(base, "link"));
      assert.deepEqual(await host.mountsBelow(join(base, "link")), [join(volume, "a b")]);
      await host.unmount(join(volume, "a b"));
      assert.deepEqual(await host.mountsBelow(volume), []);
      assert.ok(existsSync(join(volume, "a b")));
    }));
}
