import assert from "node:assert/strict";
import {
  fstatSync,
  mkdirSync,
  mkdtempSync,
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
import { describe, test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { ProjectBook } from "./project-book.ts";
import { type ProjectFiles, withoutProjects, withProject } from "./project-files.ts";

const own = { id: 1_048_577, path: "/p" };
const add = async (files: ProjectFiles): Promise<{ files: ProjectFiles; result: string }> => ({
  files: withProject(files, own),
  result: "added",
});

interface Scene {
  readonly etc: string;
  readonly clock: FakeClock;
  readonly locked: number[];
  /** Comes before each lock; throws to refuse it. */
  onLock: (attempt: number) => void;
  readonly book: ProjectBook;
}

async function within(work: (scene: Scene) => Promise<void>): Promise<void> {
  const etc = mkdtempSync(join(tmpdir(), "projects-"));
  const clock = new FakeClock();
  const locked: number[] = [];
  const lock = async (fd: number): Promise<void> => {
    scene.onLock(locked.length);
    locked.push(fstatSync(fd).ino);
  };
  const scene: Scene = { etc, clock, locked, onLock: () => undefined, book: new ProjectBook({ clock, lock }, etc) };
  try {
    await work(scene);
  } finally {
    rmSync(etc, { recursive: true });
  }
}

const refuse = (): never => {
  throw Object.assign(new Error("taken"), { code: "EAGAIN" });
};

describe("the files of projects", () => {
  test("are made when they are missing, readable for everybody, and nothing else is left", () =>
    within(async ({ etc, book }) => {
      assert.deepEqual(book.read(), { projects: "", projid: "" });
      assert.deepEqual(readdirSync(etc), [], "reading makes nothing");
      assert.equal(await book.update(add), "added");
      assert.deepEqual(readdirSync(etc).sort(), ["projects", "projid"].sort());
      assert.equal(readFileSync(join(etc, "projects"), "utf8"), "1048577:/p\n");
      assert.equal(readFileSync(join(etc, "projid"), "utf8"), "volume1048577:1048577\n");
      assert.equal(statSync(join(etc, "projects")).mode & 0o777, 0o644);
    }));

  test("keep their modes, and are not touched when nothing changes", () =>
    within(async ({ etc, book }) => {
      writeFileSync(join(etc, "projects"), "42:/srv\n", { mode: 0o600 });
      const { ino } = statSync(join(etc, "projects"));
      await book.update(async (files) => ({ files, result: undefined }));
      assert.equal(statSync(join(etc, "projects")).ino, ino);
      await book.update(add);
      assert.notEqual(statSync(join(etc, "projects")).ino, ino, "replaced, not written in place");
      assert.equal(statSync(join(etc, "projects")).mode & 0o777, 0o600);
      assert.equal(readFileSync(join(etc, "projects"), "utf8"), "42:/srv\n1048577:/p\n");
    }));

  test("that are links are refused, and what they point to stays", () =>
    within(async ({ etc, book }) => {
      writeFileSync(join(etc, "target"), "keep");
      symlinkSync("target", join(etc, "projects"));
      await assert.rejects(book.update(add), { code: "ELOOP" });
      assert.equal(readFileSync(join(etc, "target"), "utf8"), "keep");
    }));

  test("that another process has locked are waited for", () =>
    within(async (scene) => {
      let refusals = 3;
      scene.onLock = () => {
        if (refusals-- > 0) refuse();
      };
      const updating = scene.book.update(add);
      for (let i = 0; i < 3; i++) await scene.clock.advance(20);
      assert.equal(await updating, "added");
    }));

  test("that another process keeps locked are given up after 5 s", () =>
    within(async (scene) => {
      scene.onLock = refuse;
      const updating = assert.rejects(scene.book.update(add), { code: "Locked" });
      for (let i = 0; i < 300; i++) await scene.clock.advance(20);
      await updating;
      assert.equal(readFileSync(join(scene.etc, "projects"), "utf8"), "");
    }));

  test("that the last owner of the lock replaced are opened anew, and its changes kept", () =>
    within(async (scene) => {
      const path = join(scene.etc, "projects");
      scene.onLock = (attempt) => {
        if (attempt > 0) return;
        writeFileSync(`${path}.new`, "1048999:/theirs\n");
        renameSync(`${path}.new`, path);
      };
      await scene.book.update(add);
      assert.equal(readFileSync(path, "utf8"), "1048999:/theirs\n1048577:/p\n");
      assert.equal(scene.locked.length, 3, "projects twice, projid once");
    }));

  test("two changes at once are made one after the other", () =>
    within(async ({ etc, book }) => {
      const change = (id: number) => async (files: ProjectFiles) => {
        await new Promise((resolve) => setImmediate(resolve));
        return { files: withProject(files, { id, path: `/${id}` }), result: undefined };
      };
      await Promise.all([book.update(change(1_048_600)), book.update(change(1_048_601)), book.update(add)]);
      assert.equal(readFileSync(join(etc, "projects"), "utf8"), "1048600:/1048600\n1048601:/1048601\n1048577:/p\n");
    }));

  test("a change that fails leaves both as they were, and the next goes on", () =>
    within(async ({ etc, book }) => {
      await book.update(add);
      await assert.rejects(
        book.update(() => Promise.reject(new Error("no id"))),
        /no id/,
      );
      assert.equal(readFileSync(join(etc, "projects"), "utf8"), "1048577:/p\n");
      assert.equal(await book.update(add), "added");
    }));

  // The second file cannot be replaced any more: a directory has its name.
  const block = (path: string): void => {
    renameSync(path, `${path}.before`);
    mkdirSync(path);
  };

  test("an agent that dies between the two leaves an id without a name, which belongs to its directory", () =>
    within(async ({ etc, book }) => {
      const dying = book.update(async (files) => {
        block(join(etc, "projid"));
        return add(files);
      });
      await assert.rejects(dying);
      assert.equal(readFileSync(join(etc, "projects"), "utf8"), "1048577:/p\n");
    }));

  test("an agent that dies while it releases an id never leaves a name whose directory is gone", () =>
    within(async ({ etc, book }) => {
      await book.update(add);
      const dying = book.update(async (files) => {
        block(join(etc, "projects"));
        return { files: withoutProjects(files, new Set(["/p"])), result: undefined };
      });
      await assert.rejects(dying);
      assert.equal(readFileSync(join(etc, "projid"), "utf8"), "");
    }));
});
