import assert from "node:assert/strict";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SystemClock } from "./clock.ts";
import { watchPath } from "./file-watch.ts";

const clock = new SystemClock();

interface Watching {
  readonly root: string;
  /** All changes up to the appearance of a file that this call itself renames into the watched directory. */
  readonly heard: (directory: string) => Promise<string[]>;
  /** Resolves when a change of this description has come. */
  readonly until: (change: string) => Promise<void>;
  readonly all: string[];
}

async function watching(
  t: TestContext,
  path: (root: string) => string,
  prepare?: { make?: (root: string) => void; backend?: "auto" | "fs.watch" },
): Promise<Watching> {
  // In memory where there is such a place: a busy disk would make the tests slow.
  const root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "watch-"));
  prepare?.make?.(root);
  const controller = new AbortController();
  const all: string[] = [];
  let wake = (): void => undefined;
  await watchPath(path(root), {
    clock,
    signal: controller.signal,
    backend: prepare?.backend,
    onError: (error) => all.push(String(error)),
    onChange: ({ kind, name }) => {
      all.push(name === "" ? kind : `${kind} ${name}`);
      wake();
    },
  });
  t.after(() => {
    controller.abort();
    rmSync(root, { recursive: true });
  });
  const until = async (change: string): Promise<void> => {
    while (!all.includes(change)) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const heard = async (directory: string): Promise<string[]> => {
    // Written in place, so that they come after everything that had to become quiet first. Two in a row: timers that
    // are due within the same millisecond may fire in either order, those of the second are due 20 ms later.
    for (const marker of ["zz-last", "zz-later"]) {
      writeFileSync(join(directory, marker), "");
      await until(`appeared ${marker}`);
    }
    return all.filter((change) => !/ zz-la| \.tmp/.test(change));
  };
  return { root, heard, until, all };
}

function replace(path: string, content: string): void {
  const temporary = join(path, "../.tmp");
  writeFileSync(temporary, content);
  renameSync(temporary, path);
}

const withFile = (root: string): void => writeFileSync(join(root, "a"), "one");

for (const backend of ["auto", "fs.watch"] as const) {
  const cases: { name: string; act: (root: string) => void; want: string[] }[] = [
    {
      name: "a file written in place appears once it is quiet",
      act: (root) => writeFileSync(join(root, "b"), "x"),
      want: ["appeared b"],
    },
    {
      name: "a file changed in place by several writes is one change",
      act: (root) => {
        for (let i = 0; i < 5; i++) appendFileSync(join(root, "a"), "more");
      },
      want: ["changed a"],
    },
    { name: "a removal is told", act: (root) => unlinkSync(join(root, "a")), want: ["removed a"] },
    {
      name: "a file that is removed and back at once was removed",
      act: (root) => {
        unlinkSync(join(root, "a"));
        writeFileSync(join(root, "a"), "one");
      },
      want: ["removed a", "appeared a"],
    },
    { name: "a rename over a file is one change", act: (root) => replace(join(root, "a"), "two"), want: ["changed a"] },
    {
      name: "a file moved away was removed",
      act: (root) => renameSync(join(root, "a"), join(root, "../watch-moved")),
      want: ["removed a"],
    },
  ];
  for (const c of cases) {
    test(`${backend}: ${c.name}`, async (t) => {
      const { root, heard } = await watching(t, (at) => at, { make: withFile, backend });
      t.after(() => rmSync(join(root, "../watch-moved"), { force: true }));
      c.act(root);
      assert.deepEqual(await heard(root), c.want);
    });
  }
}

test("several replacements in a row are changes, never a removal", async (t) => {
  const { root, heard } = await watching(t, (at) => at, { make: withFile });
  for (const text of ["2", "3", "4", "5"]) replace(join(root, "a"), text);
  assert.deepEqual(await heard(root), ["changed a", "changed a", "changed a", "changed a"]);
});

test("a file that came and went unseen is not told of", async (t) => {
  const { root, heard } = await watching(t, (at) => at);
  writeFileSync(join(root, "b"), "");
  unlinkSync(join(root, "b"));
  assert.deepEqual(await heard(root), []);
});

test("a single file is told under its own name, its neighbours not at all", async (t) => {
  const { root, until, all } = await watching(t, (at) => join(at, "a"), { make: withFile });
  writeFileSync(join(root, "b"), "x");
  unlinkSync(join(root, "a"));
  withFile(root);
  await until("appeared a");
  replace(join(root, "a"), "two");
  await until("changed a");
  assert.deepEqual(all, ["removed a", "appeared a", "changed a"]);
});

test("a swap of the link on the way to a file is a change of the file", async (t) => {
  const { root, until, all } = await watching(t, (at) => join(at, "cert"), {
    make: (at) => {
      for (const version of ["..1", "..2"]) {
        mkdirSync(join(at, version));
        writeFileSync(join(at, version, "cert"), version);
      }
      symlinkSync("..1", join(at, "..data"));
      symlinkSync("..data/cert", join(at, "cert"));
    },
  });
  symlinkSync("..2", join(root, "..new"));
  renameSync(join(root, "..new"), join(root, "..data"));
  await until("changed cert");
  appendFileSync(join(root, "..2/cert"), "more");
  while (all.length < 2) await clock.sleep(1);
  assert.deepEqual(all, ["changed cert", "changed cert"]);
});

test("a directory behind a swapped link leads to a rescan, and the new one is watched", async (t) => {
  const { root, until, all } = await watching(t, (at) => join(at, "current"), {
    make: (at) => {
      for (const name of ["one", "two"]) mkdirSync(join(at, name));
      symlinkSync("one", join(at, "current"));
    },
  });
  symlinkSync("two", join(root, "next"));
  renameSync(join(root, "next"), join(root, "current"));
  await until("rescan");
  replace(join(root, "two/pod"), "x");
  await until("appeared pod");
  assert.ok(!all.includes("removed pod"));
});

test("a directory that is removed and made again is followed", async (t) => {
  const { root, until, all } = await watching(t, (at) => join(at, "deep/pods"), {
    make: (at) => mkdirSync(join(at, "deep/pods"), { recursive: true }),
  });
  rmSync(join(root, "deep"), { recursive: true });
  await until("rescan");
  all.length = 0;
  mkdirSync(join(root, "deep/pods"), { recursive: true });
  await until("rescan");
  replace(join(root, "deep/pods/a"), "x");
  await until("appeared a");
});

test("a path that is not there yet is watched for", async (t) => {
  const { root, until } = await watching(t, (at) => join(at, "x/y/file"));
  mkdirSync(join(root, "x/y"), { recursive: true });
  writeFileSync(join(root, "x/y/file"), "1");
  await until("appeared file");
});

test("a link in the directory is told when what it points to changes", async (t) => {
  const { root, until } = await watching(t, (at) => join(at, "pods"), {
    make: (at) => {
      mkdirSync(join(at, "pods"));
      writeFileSync(join(at, "elsewhere"), "1");
      symlinkSync("../elsewhere", join(at, "pods/a"));
    },
  });
  appendFileSync(join(root, "elsewhere"), "2");
  await until("changed a");
  unlinkSync(join(root, "elsewhere"));
  await until("removed a");
  replace(join(root, "elsewhere"), "3");
  await until("appeared a");
});

test("an overflow of the kernel's queue leads to a rescan, and the watch goes on", async (t) => {
  const { root, until } = await watching(t, (at) => at);
  for (const name of ["0", "1"]) writeFileSync(join(root, name), "");
  // An event each; by turns, because the kernel melts equal ones. The queue holds 16,384 unless the machine was tuned.
  for (let i = 0; i < 17_000; i++) chmodSync(join(root, `${i % 2}`), 0o600);
  await until("rescan");
  replace(join(root, "a"), "x");
  await until("appeared a");
});

test("a link loop is no endless walk", async (t) => {
  const { root, until } = await watching(t, (at) => join(at, "loop"), {
    make: (at) => symlinkSync("loop", join(at, "loop")),
  });
  unlinkSync(join(root, "loop"));
  writeFileSync(join(root, "loop"), "x");
  await until("appeared loop");
});

test("after the abort nothing is heard and no descriptor is left", async () => {
  const root = mkdtempSync(join(tmpdir(), "watch-"));
  const descriptors = (): number => readdirSync("/proc/self/fd").length;
  const once = async (): Promise<void> => {
    const controller = new AbortController();
    await watchPath(root, { clock, signal: controller.signal, onChange: () => assert.fail("heard") });
    controller.abort();
    writeFileSync(join(root, "a"), "x");
    await clock.sleep(1);
  };
  await once();
  const before = descriptors();
  for (let i = 0; i < 20; i++) await once();
  assert.ok(descriptors() <= before, `${descriptors()} descriptors, ${before} before`);
  rmSync(root, { recursive: true });
});
