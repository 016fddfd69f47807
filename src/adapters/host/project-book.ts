import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  statSync,
} from "node:fs";
import { writeAtomic } from "../../lib/atomic-file.ts";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { HostError } from "./host-error.ts";
import type { ProjectFiles } from "./project-files.ts";

export interface ProjectBookDeps {
  readonly clock: Clock;
  /** Takes the exclusive lock of an open file, or fails with EAGAIN. */
  lock(fd: number): Promise<void>;
}

/** Another kubelet or an administrator's tool has the files for a moment; who has them longer is not waited for. */
const LOCK_LIMIT_MS = 5000;
const LOCK_PAUSE_MS = 20;

/** The projects of this machine, in two files that others write to as well: locked, and replaced as a whole. */
export class ProjectBook {
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly deps: ProjectBookDeps,
    /** Where `projects` and `projid` are: /etc. */
    private readonly directory = "/etc",
  ) {}

  /** What the files say now, without their lock: each is always whole. */
  read(): ProjectFiles {
    return { projects: contentOf(this.path("projects")), projid: contentOf(this.path("projid")) };
  }

  /**
   * Replaces the files by what `change` makes of them, nobody else writing meanwhile. A new id is written beside its
   * directory before it gets a name, and loses the name first: a name alone is never left behind.
   */
  update<T>(change: (files: ProjectFiles) => Promise<{ files: ProjectFiles; result: T }>): Promise<T> {
    const done = this.turn.then(() => this.locked(change));
    this.turn = done.catch(() => undefined);
    return done;
  }

  private async locked<T>(change: (files: ProjectFiles) => Promise<{ files: ProjectFiles; result: T }>): Promise<T> {
    const until = this.deps.clock.now().mono + LOCK_LIMIT_MS;
    const first = await this.lock(this.path("projects"), until);
    try {
      const second = await this.lock(this.path("projid"), until);
      try {
        const before = this.read();
        const { files, result } = await change(before);
        const order: (keyof ProjectFiles)[] = ["projects", "projid"];
        // One change either adds or removes.
        if (files.projects.length < before.projects.length) order.reverse();
        for (const name of order) {
          if (files[name] !== before[name]) await this.write(this.path(name), files[name]);
        }
        return result;
      } finally {
        closeSync(second);
      }
    } finally {
      closeSync(first);
    }
  }

  private async write(path: string, text: string): Promise<void> {
    await writeAtomic(path, text, { mode: statSync(path).mode & 0o7777 });
  }

  /** An open, locked file that is still the one of this name: whoever had the lock before may have replaced it. */
  private async lock(path: string, until: number): Promise<number> {
    const { clock, lock } = this.deps;
    for (;;) {
      const fd = openOwn(path);
      try {
        await lock(fd);
        if (fstatSync(fd).ino === lstatSync(path).ino) return fd;
        closeSync(fd);
      } catch (error) {
        closeSync(fd);
        const code = errnoOf(error);
        if (code !== "EAGAIN" && code !== "EWOULDBLOCK" && code !== "ENOENT") throw error;
        if (clock.now().mono >= until) throw new HostError("Locked", `${path} is locked by another process`);
        await clock.sleep(LOCK_PAUSE_MS);
      }
    }
  }

  private path(name: keyof ProjectFiles): string {
    return `${this.directory}/${name}`;
  }
}

/** Links and devices are refused: replacing them would leave what they point to as it is. */
function openOwn(path: string): number {
  const isNew = !existsSync(path);
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644);
  if (fstatSync(fd).isFile()) {
    // Whatever the umask is: tools of other users read them.
    if (isNew) fchmodSync(fd, 0o644);
    return fd;
  }
  closeSync(fd);
  throw new HostError("Unsupported", `${path} is not a regular file`);
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return "";
    throw error;
  }
}
