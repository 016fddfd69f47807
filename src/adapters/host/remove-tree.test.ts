import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { HostError } from "./host-error.ts";
import { readMountTable } from "./mount-table.ts";
import { type RemoveTreeDeps, removeTree } from "./remove-tree.ts";
import { chooseTreeAccess, NativeTreeAccess, ProcTreeAccess, parseEntries, type TreeAccess } from "./tree-access.ts";

const accesses: [string, () => Promise<TreeAccess>][] = [
  ["chosen", chooseTreeAccess],
  ["without koffi", async () => new ProcTreeAccess()],
];

function place(t: TestContext): { root: string; tree: string } {
  // In memory where there is such a place: a busy disk would make the tests slow.
  const root = realpathSync(mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "remove-")));
  // Tests may clean up after themselves as they like: nothing is ever mounted in these.
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const tree = join(root, "tree");
  mkdirSync(tree);
  return { root, tree };
}

const refused = (code: string) => (error: unknown) => {
  assert.ok(error instanceof HostError, String(error));
  assert.equal(error.code, code, error.message);
  return true;
};

test("on a kernel with openat2 it is what is used", async () => {
  assert.ok((await chooseTreeAccess()) instanceof NativeTreeAccess);
});

for (const [label, make] of accesses) {
  let access: TreeAccess;
  before(async () => {
    access = await make();
  });
  const remove = (path: string, more: Partial<RemoveTreeDeps> & { signal?: AbortSignal } = {}): Promise<void> =>
    removeTree({ access, mountTable: readMountTable, ...more }, path, { signal: more.signal });

  test(`${label}: a tree is removed, its siblings stay, no descriptor is left`, async (t) => {
    const { root, tree } = place(t);
    mkdirSync(join(tree, "a/b/c"), { recursive: true });
    for (const name of ["x", "a/y", "a/b/c/z"]) writeFileSync(join(tree, name), name);
    writeFileSync(join(root, "tree-neighbour"), "stays");
    await remove(tree);
    assert.deepEqual(readdirSync(root), ["tree-neighbour"]);
    assert.deepEqual(descriptorsBelow(root), []);
  });

  test(`${label}: links are removed and never followed, wherever they point`, async (t) => {
    const { root, tree } = place(t);
    mkdirSync(join(root, "precious"));
    writeFileSync(join(root, "precious/data"), "keep");
    mkdirSync(join(tree, "sub"));
    symlinkSync(join(root, "precious"), join(tree, "absolute"));
    symlinkSync("../../precious", join(tree, "sub/relative"));
    symlinkSync("../../precious/data", join(tree, "sub/file"));
    symlinkSync("/", join(tree, "slash"));
    symlinkSync("nowhere", join(tree, "dangling"));
    await remove(tree);
    assert.equal(existsSync(tree), false);
    assert.equal(readFileSync(join(root, "precious/data"), "utf8"), "keep");
  });

  test(`${label}: a path that is itself a link loses only the link`, async (t) => {
    const { root, tree } = place(t);
    writeFileSync(join(tree, "data"), "keep");
    symlinkSync(tree, join(root, "link"));
    await remove(join(root, "link"));
    assert.equal(existsSync(join(root, "link")), false);
    assert.equal(readFileSync(join(tree, "data"), "utf8"), "keep");
  });

  test(`${label}: a directory that is swapped for a link after it was listed is not followed`, async (t) => {
    const { root, tree } = place(t);
    mkdirSync(join(root, "precious"));
    writeFileSync(join(root, "precious/data"), "keep");
    mkdirSync(join(tree, "sub"));
    writeFileSync(join(tree, "sub/old"), "");
    await remove(tree, {
      onOpen: async (path) => {
        if (path !== join(tree, "sub")) return;
        renameSync(path, join(root, "aside"));
        symlinkSync(join(root, "precious"), path);
      },
    });
    assert.equal(readFileSync(join(root, "precious/data"), "utf8"), "keep");
    assert.deepEqual(readdirSync(join(root, "aside")), ["old"]);
    assert.equal(existsSync(tree), false);
  });

  test(`${label}: a directory that is put in the place of the open one is not touched`, async (t) => {
    const { root, tree } = place(t);
    mkdirSync(join(tree, "sub/inner"), { recursive: true });
    writeFileSync(join(tree, "sub/inner/old"), "");
    mkdirSync(join(root, "inner"));
    writeFileSync(join(root, "inner/data"), "keep");
    const removal = remove(tree, {
      onOpen: async (path) => {
        // From now on `sub/inner` is by its path another directory than the one that was listed.
        if (path !== join(tree, "sub/inner")) return;
        renameSync(join(tree, "sub"), join(root, "moved"));
        mkdirSync(join(tree, "sub"));
        renameSync(join(root, "inner"), join(tree, "sub/inner"));
      },
    });
    await assert.rejects(removal, refused("Busy"));
    assert.equal(readFileSync(join(tree, "sub/inner/data"), "utf8"), "keep");
    assert.deepEqual(readdirSync(join(root, "moved")), []);
  });

  test(`${label}: any name that a filesystem takes is removed`, async (t) => {
    const { root, tree } = place(t);
    const names = [
      ...[
        " ",
        "with space",
        "new\nline",
        "tab\t",
        "-rf",
        "--",
        "*",
        "?",
        "...",
        "..hidden",
        ".. ",
        "..\n",
        "~",
        "$HOME",
      ],
      ...["naïve", "日本語", "🚀", "e\u0301", "'quote\"", "back\\slash", "\\040", "a".repeat(255), "\u0001\u001b[2J"],
    ];
    for (const name of names) {
      mkdirSync(join(tree, name));
      writeFileSync(`${tree}/${name}/${name}`, "");
    }
    // No valid UTF-8.
    const bytes = Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe, 0x20, 0xc3])]);
    mkdirSync(bytes);
    writeFileSync(Buffer.concat([bytes, Buffer.from("/"), Buffer.from([0x80])]), "");
    writeFileSync(join(root, "hidden"), "keep");
    await remove(tree);
    assert.deepEqual(readdirSync(root), ["hidden"]);
  });

  test(`${label}: a tree of 500 levels with files on each is removed with few descriptors`, async (t) => {
    const { root, tree } = place(t);
    const cwd = process.cwd();
    process.chdir(tree);
    try {
      for (let level = 0; level < 500; level++) {
        writeFileSync("file", "");
        // Longer than any path may be, in all.
        mkdirSync("directory-of-one-level");
        process.chdir("directory-of-one-level");
      }
    } finally {
      process.chdir(cwd);
    }
    let most = 0;
    await remove(tree, {
      onOpen: async () => {
        most = Math.max(most, readdirSync("/proc/self/fd").length);
      },
    });
    assert.deepEqual(readdirSync(root), []);
    assert.ok(most < 260, `${most} descriptors`);
  });

  test(`${label}: a directory of 20,000 files is removed without blocking the event loop`, async (t) => {
    const { root, tree } = place(t);
    for (let i = 0; i < 20_000; i++) writeFileSync(join(tree, `file-${i}`), "");
    let turns = 0;
    let goesOn = true;
    const count = (): void => {
      turns++;
      if (goesOn) setImmediate(count);
    };
    setImmediate(count);
    await remove(tree);
    goesOn = false;
    assert.deepEqual(readdirSync(root), []);
    // In turns, not in milliseconds: how long one takes is the machine's business.
    assert.ok(turns > 100, `the event loop turned only ${turns} times`);
  });

  test(`${label}: files that are written while they are removed are no endless loop`, async (t) => {
    const { tree } = place(t);
    mkdirSync(join(tree, "sub"));
    let written = 0;
    const busy: TreeAccess = Object.create(access, {
      removeDirectory: {
        value: (parent: Parameters<TreeAccess["removeDirectory"]>[0], name: Buffer) => {
          writeFileSync(join(tree, name.toString() === "sub" ? "sub" : "", `late-${written++}`), "");
          return access.removeDirectory(parent, name);
        },
      },
    });
    await assert.rejects(remove(tree, { access: busy }), refused("Busy"));
    assert.ok(written < 10);
    await remove(tree);
    assert.equal(existsSync(tree), false, "and it may be repeated");
  });

  test(`${label}: an abort stops between entries and the rest can be removed later`, async (t) => {
    const { tree } = place(t);
    for (const name of ["a", "b", "c", "d"]) mkdirSync(join(tree, name, "deep"), { recursive: true });
    const controller = new AbortController();
    let opened = 0;
    const removal = remove(tree, {
      signal: controller.signal,
      onOpen: async () => {
        if (++opened === 4) controller.abort("stop");
      },
    });
    await assert.rejects(removal, (error) => error === "stop");
    assert.ok(existsSync(tree));
    await remove(tree);
    assert.equal(existsSync(tree), false);
  });

  test(`${label}: a missing path, a missing parent and a single file are fine`, async (t) => {
    const { root, tree } = place(t);
    await remove(join(root, "no"));
    await remove(join(root, "no/such/parent"));
    writeFileSync(join(root, "file"), "");
    await remove(join(root, "file"));
    await remove(`${tree}//`);
    assert.deepEqual(readdirSync(root), []);
  });
}

test("a mount in the table refuses everything before anything is touched", async (t) => {
  const { root, tree } = place(t);
  writeFileSync(join(tree, "data"), "keep");
  symlinkSync(root, join(root, "way"));
  const entry = {
    id: 1,
    device: "0:1",
    root: "/",
    options: [],
    type: "ext4",
    source: "",
    superOptions: [],
    isShared: false,
  };
  const access = await chooseTreeAccess();
  for (const target of [tree, join(tree, "volumes/a b"), join(tree, "x//deleted")]) {
    const mountTable = () => [
      { ...entry, target: "/" },
      { ...entry, target },
    ];
    await assert.rejects(removeTree({ access, mountTable }, tree), refused("Mounted"));
    // By another way to the same place: the table speaks of the real one.
    await assert.rejects(removeTree({ access, mountTable }, join(root, "way/tree")), refused("Mounted"));
    assert.equal(readFileSync(join(tree, "data"), "utf8"), "keep");
  }
  const beside = () => [
    { ...entry, target: `${tree}-other` },
    { ...entry, target: root },
  ];
  await removeTree({ access, mountTable: beside }, tree);
  assert.equal(existsSync(tree), false);
});

const nonsense = ["", "/", "//", "/tmp", "/tmp/", "relative/path", ".", "/tmp/../etc/x", "/tmp/x/..", "/tmp/a\0b"];
for (const path of nonsense) {
  test(`${JSON.stringify(path)} is never removed`, async () => {
    const access = await chooseTreeAccess();
    await assert.rejects(removeTree({ access, mountTable: readMountTable }, path), refused("InvalidArgument"));
  });
}

test("directory entries are read as the kernel writes them, without the two that every directory has", () => {
  const record = (name: string, type: number): Buffer => {
    const length = Math.ceil((20 + Buffer.byteLength(name)) / 8) * 8;
    const buffer = Buffer.alloc(length);
    buffer.writeUInt16LE(length, 16);
    buffer[18] = type;
    buffer.write(name, 19);
    return buffer;
  };
  const entries = parseEntries(
    Buffer.concat([record(".", 4), record("..", 4), record("dir", 4), record("f", 8), record("odd", 0)]),
  );
  const want = [
    { name: "dir", kind: "directory" },
    { name: "f", kind: "other" },
    { name: "odd", kind: "unknown" },
  ];
  assert.deepEqual(
    entries.map(({ name, kind }) => ({ name: name.toString(), kind })),
    want,
  );
});

/** What this process holds open below a directory; other tests of the process open and close things of their own. */
function descriptorsBelow(root: string): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(root) ? [target] : [];
    } catch {
      return [];
    }
  });
}
