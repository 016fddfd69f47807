import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { type Logger, silent } from "../../lib/log.ts";
import { ProjectBook } from "./project-book.ts";
import { ProjectQuotas } from "./project-quotas.ts";
import type { ProjectUsage, QuotaCalls } from "./quota-calls.ts";

const FIRST = 1_048_577;
const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** A kernel that counts projects: one inode a directory, and what a test says. */
class Kernel implements QuotaCalls {
  readonly projects = new Map<string, number>();
  readonly limits = new Map<number, string>();
  /** Besides the directories themselves. */
  readonly held = new Map<number, ProjectUsage>();
  readonly faults: Partial<Record<keyof QuotaCalls, Error>> = {};
  calls = 0;

  async project(fd: number): Promise<number> {
    this.check("project");
    return this.projects.get(pathOf(fd)) ?? 0;
  }

  async setProject(fd: number, id: number): Promise<void> {
    this.check("setProject");
    this.projects.set(pathOf(fd), id);
  }

  async usage(_fd: number, id: number): Promise<ProjectUsage> {
    this.check("usage");
    const { bytes, inodes } = this.held.get(id) ?? { bytes: 0, inodes: 0 };
    const directories = [...this.projects].filter(([path, project]) => project === id && existsSync(path)).length;
    return { bytes: bytes + 4096 * directories, inodes: inodes + directories };
  }

  async setLimit(_fd: number, id: number, limit: "endless" | "none"): Promise<void> {
    this.check("setLimit");
    this.limits.set(id, limit);
  }

  private check(name: keyof QuotaCalls): void {
    this.calls++;
    const fault = this.faults[name];
    if (fault !== undefined) throw fault;
  }
}

function pathOf(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`);
}

class Scene {
  readonly base = mkdtempSync(join(tmpdir(), "quotas-"));
  readonly kernel = new Kernel();
  readonly warnings: string[] = [];
  isOn = true;
  hasKernel = true;
  quotas = this.newAgent();

  newAgent(): ProjectQuotas {
    const log: Logger = { ...silent, warn: (message) => void this.warnings.push(message) };
    const book = new ProjectBook({ clock: new FakeClock(), lock: () => Promise.resolve() }, this.base);
    const calls = async (): Promise<Kernel | undefined> => (this.hasKernel ? this.kernel : undefined);
    return new ProjectQuotas({ calls, book, log, isOn: () => this.isOn });
  }

  path(name: string): string {
    return join(this.base, "pods/uid/volumes/kubernetes.io~empty-dir", name);
  }

  make(name: string): string {
    mkdirSync(this.path(name), { recursive: true });
    return this.path(name);
  }

  file(name: "projects" | "projid"): string {
    const path = join(this.base, name);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }
}

async function within(work: (scene: Scene) => Promise<void>): Promise<void> {
  const scene = new Scene();
  try {
    await work(scene);
  } finally {
    rmSync(scene.base, { recursive: true });
  }
}

describe("a directory that is counted", () => {
  test("has an id of its own from 1048577 on, in both files, an unlimited quota, and reports its usage", () =>
    within(async (scene) => {
      const [a, b] = [scene.make("a"), scene.make("b")];
      assert.deepEqual([await scene.quotas.begin(a), await scene.quotas.begin(b)], [true, true]);
      assert.deepEqual([...scene.kernel.projects.values()], [FIRST, FIRST + 1]);
      assert.equal(scene.file("projects"), `${FIRST}:${a}\n${FIRST + 1}:${b}\n`);
      assert.equal(scene.file("projid"), `volume${FIRST}:${FIRST}\nvolume${FIRST + 1}:${FIRST + 1}\n`);
      assert.deepEqual([...scene.kernel.limits.values()], ["endless", "endless"]);
      scene.kernel.held.set(FIRST + 1, { bytes: 1000, inodes: 7 });
      assert.deepEqual(await scene.quotas.usage(b), { bytes: 5096, inodes: 8 });
      assert.deepEqual(await scene.quotas.usage(a), { bytes: 4096, inodes: 1 });
    }));

  test("keeps its id however often it is asked for, also by the next agent", () =>
    within(async (scene) => {
      const a = scene.make("a");
      await scene.quotas.begin(a);
      const before = scene.file("projects");
      writeFileSync(join(a, "file"), "x");
      assert.equal(await scene.quotas.begin(a), true);
      scene.quotas = scene.newAgent();
      assert.deepEqual(await scene.quotas.usage(a), { bytes: 4096, inodes: 1 });
      assert.equal(await scene.quotas.begin(a), true);
      assert.equal(scene.file("projects"), before);
    }));

  test("releases its id when it is removed, and the next one is allocated it", () =>
    within(async (scene) => {
      const a = scene.make("a");
      await scene.quotas.begin(a);
      rmSync(a, { recursive: true });
      await scene.quotas.end(a);
      await scene.quotas.end(a);
      assert.deepEqual([scene.file("projects"), scene.file("projid")], ["", ""]);
      assert.equal(scene.kernel.limits.get(FIRST), "none");
      await scene.quotas.begin(scene.make("b"));
      assert.equal(scene.file("projects"), `${FIRST}:${scene.path("b")}\n`);
    }));

  test("releases its id also if quotas were disabled meanwhile, and is not queried any more", () =>
    within(async (scene) => {
      const a = scene.make("a");
      await scene.quotas.begin(a);
      scene.isOn = false;
      assert.equal(await scene.quotas.usage(a), undefined);
      assert.equal(await scene.quotas.begin(scene.make("b")), false);
      rmSync(a, { recursive: true });
      await scene.quotas.end(a);
      assert.equal(scene.file("projects"), "");
    }));
});

describe("ids of others", () => {
  test("are skipped in both files, and where the kernel still accounts usage for them", () =>
    within(async (scene) => {
      writeFileSync(join(scene.base, "projects"), `${FIRST}:/srv/theirs\n`);
      writeFileSync(join(scene.base, "projid"), `theirs:${FIRST + 1}\n`);
      // Removed files that somebody has open, and an empty one.
      scene.kernel.held.set(FIRST + 2, { bytes: 1, inodes: 0 }).set(FIRST + 3, { bytes: 0, inodes: 1 });
      await scene.quotas.begin(scene.make("a"));
      assert.equal(scene.kernel.projects.get(scene.path("a")), FIRST + 4);
      assert.match(scene.file("projects"), new RegExp(`^${FIRST}:/srv/theirs\n${FIRST + 4}:`));
    }));

  test("all in use: the directory is walked, and the reason is logged", () =>
    within(async (scene) => {
      scene.kernel.usage = async () => ({ bytes: 1, inodes: 1 });
      assert.equal(await scene.quotas.begin(scene.make("a")), false);
      assert.deepEqual([scene.warnings.length, scene.file("projects")], [1, ""]);
    }));

  const foreign: { name: string; id: number; entry?: string }[] = [
    { name: "an administrator's", id: 42 },
    { name: "one that looks like a volume's and is written down for nobody", id: FIRST + 9 },
    { name: "one of the directory above, which counts more than this one", id: FIRST + 9, entry: "/elsewhere" },
  ];
  for (const { name, id, entry } of foreign) {
    test(`a directory that has one is left alone and walked: ${name}`, () =>
      within(async (scene) => {
        const a = scene.make("a");
        if (entry !== undefined) writeFileSync(join(scene.base, "projects"), `${id}:${entry}\n`);
        const before = scene.file("projects");
        scene.kernel.projects.set(a, id);
        assert.equal(await scene.quotas.begin(a), false);
        assert.equal(await scene.quotas.usage(a), undefined);
        await scene.quotas.end(a);
        assert.deepEqual([scene.kernel.projects.get(a), scene.file("projects")], [id, before]);
      }));
  }
});

describe("what an agent left that died", () => {
  test("before the directory had its id: it gets that one", () =>
    within(async (scene) => {
      const a = scene.make("a");
      writeFileSync(join(scene.base, "projects"), `${FIRST + 5}:${a}\n`);
      assert.equal(await scene.quotas.begin(a), true);
      assert.deepEqual(
        [scene.kernel.projects.get(a), scene.file("projid")],
        [FIRST + 5, `volume${FIRST + 5}:${FIRST + 5}\n`],
      );
    }));

  test("after its directory was removed: it is taken out with the next volume, and nothing else is", () =>
    within(async (scene) => {
      const kept = scene.make("kept");
      await scene.quotas.begin(scene.make("gone"));
      await scene.quotas.begin(kept);
      rmSync(scene.path("gone"), { recursive: true });
      const theirs = `${FIRST + 7}:/a/directory/that/is/not/there\n`;
      writeFileSync(join(scene.base, "projects"), scene.file("projects") + theirs);
      await scene.newAgent().begin(scene.make("new"));
      assert.equal(scene.file("projects"), `${FIRST + 1}:${kept}\n${theirs}${FIRST}:${scene.path("new")}\n`);
    }));
});

describe("where nothing can be counted", () => {
  for (const code of ["ENOSYS", "ESRCH", "EOPNOTSUPP", "ENOTTY", "EINVAL", "ENODEV"]) {
    for (const call of ["project", "usage"] as const) {
      test(`${code} at ${call}: nothing is written, nothing is logged`, () =>
        within(async (scene) => {
          scene.kernel.faults[call] = failure(code);
          const a = scene.make("a");
          assert.equal(await scene.quotas.begin(a), false);
          assert.equal(await scene.quotas.usage(a), undefined);
          assert.deepEqual([scene.file("projects"), scene.warnings], ["", []]);
          assert.ok(!existsSync(join(scene.base, "projects")));
        }));
    }
  }

  test("without the C library nothing is counted", () =>
    within(async (scene) => {
      scene.hasKernel = false;
      assert.equal(await scene.quotas.begin(scene.make("a")), false);
      assert.equal(await scene.quotas.usage(scene.path("a")), undefined);
      assert.deepEqual(scene.warnings, []);
    }));

  test("disabled, the kernel is not called", () =>
    within(async (scene) => {
      scene.isOn = false;
      await scene.quotas.begin(scene.make("a"));
      await scene.quotas.usage(scene.path("a"));
      await scene.quotas.end(scene.path("a"));
      assert.deepEqual([scene.kernel.calls, existsSync(join(scene.base, "projects"))], [0, false]);
    }));

  test("a directory that holds something already is not counted: what is in it would be missing", () =>
    within(async (scene) => {
      writeFileSync(join(scene.make("a"), "file"), "x");
      assert.equal(await scene.quotas.begin(scene.path("a")), false);
      assert.equal(scene.kernel.projects.size, 0);
    }));

  test("the kernel refuses the id: it is released, and the reason is logged", () =>
    within(async (scene) => {
      scene.kernel.faults.setProject = failure("EPERM");
      assert.equal(await scene.quotas.begin(scene.make("a")), false);
      assert.deepEqual([scene.file("projects"), scene.file("projid"), scene.warnings.length], ["", "", 1]);
    }));

  const limits = [
    { code: "ERANGE", said: 0 },
    { code: "EPERM", said: 1 },
  ];
  for (const { code, said } of limits) {
    test(`the limit cannot be set (${code}): it is counted all the same`, () =>
      within(async (scene) => {
        scene.kernel.faults.setLimit = failure(code);
        assert.equal(await scene.quotas.begin(scene.make("a")), true);
        assert.equal((await scene.quotas.usage(scene.path("a")))?.inodes, 1);
        assert.equal(scene.warnings.length, said);
      }));
  }

  test("files that cannot be written: the directory is walked, and the reason is logged", () =>
    within(async (scene) => {
      mkdirSync(join(scene.base, "projects"));
      assert.equal(await scene.quotas.begin(scene.make("a")), false);
      await scene.quotas.end(scene.path("a"));
      assert.deepEqual([scene.kernel.projects.size, scene.warnings.length], [0, 2]);
    }));

  test("a directory that no longer exists", () =>
    within(async (scene) => {
      await scene.quotas.begin(scene.make("a"));
      rmSync(scene.path("a"), { recursive: true });
      assert.equal(await scene.quotas.usage(scene.path("a")), undefined);
    }));
});
