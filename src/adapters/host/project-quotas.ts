import { constants, existsSync } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { ProjectBook } from "./project-book.ts";
import {
  FIRST_PROJECT,
  type ProjectFiles,
  projectOfPath,
  takenIds,
  volumeProjects,
  withoutProjects,
  withProject,
} from "./project-files.ts";
import { isWithoutQuotas, type ProjectUsage, type QuotaCalls } from "./quota-calls.ts";

export interface ProjectQuotasDeps {
  /** Undefined where the kernel cannot be asked. */
  calls(): Promise<QuotaCalls | undefined>;
  readonly book: Pick<ProjectBook, "read" | "update">;
  readonly log: Logger;
  /** Whether new volumes are counted and old ones asked; what was begun is ended in any case. Read at each use. */
  isOn(): boolean;
}

/** So many ids that others use without telling are passed over. */
const MOST_TRIES = 1000;
/** What an agent leaves behind that dies between the removal of a volume and the end of its project. */
const OWN_PATH = /\/pods\/[^/]+\/volumes\/kubernetes\.io~empty-dir\/[^/]+$/;

/**
 * Lets the filesystem itself count what directories hold, by one project each. Quotas only count here, nothing is ever
 * refused because of them. Which project is whose is kept by the directories and by /etc/projects, not by the agent. On
 * filesystems without quotas of projects all of this does nothing.
 */
export class ProjectQuotas {
  /** Directories whose project is known to be theirs alone. */
  private readonly known = new Map<string, number>();

  constructor(private readonly deps: ProjectQuotasDeps) {}

  /** Begins to count a directory, if it is empty and can be counted. Safe to repeat; never rejects. */
  async begin(path: string): Promise<boolean> {
    if (!this.deps.isOn()) return false;
    try {
      const calls = await this.deps.calls();
      return calls !== undefined && (await withDirectory(path, (fd) => this.assign(calls, { path, fd })));
    } catch (error) {
      if (!isWithoutQuotas(error)) {
        this.deps.log.warn("Failed to assign quota to volume", { path, error: messageOf(error) });
      }
      return false;
    }
  }

  /** What a directory holds, at the cost of two system calls; undefined for one that is not counted. */
  async usage(path: string): Promise<ProjectUsage | undefined> {
    if (!this.deps.isOn()) return undefined;
    try {
      const calls = await this.deps.calls();
      if (calls === undefined) return undefined;
      return await withDirectory(path, async (fd) => {
        const id = await calls.project(fd);
        return this.isOwn(path, id) ? calls.usage(fd, id) : undefined;
      });
    } catch {
      // Quotas were switched off, or the directory is gone: a walk finds out.
      return undefined;
    }
  }

  /** Gives the project of a directory back that was removed. Safe to repeat; never rejects. */
  async end(path: string): Promise<void> {
    this.known.delete(path);
    const { book, log } = this.deps;
    try {
      const id = projectOfPath(book.read(), path);
      if (id === undefined) return;
      await book.update(async (files) => ({ files: withoutProjects(files, new Set([path])), result: undefined }));
      const calls = await this.deps.calls();
      // The kernel keeps a record for each project that has a limit.
      await withDirectory(dirname(path), async (fd) => calls?.setLimit(fd, id, "none")).catch(() => undefined);
    } catch (error) {
      log.warn("Failed to release project of volume", { path, error: messageOf(error) });
    }
  }

  /** Whether the directory has a project that counts nothing else: not one that it inherited, or of somebody else. */
  private isOwn(path: string, id: number): boolean {
    if (id < FIRST_PROJECT) return false;
    if (this.known.get(path) === id) return true;
    if (projectOfPath(this.deps.book.read(), path) !== id) return false;
    this.known.set(path, id);
    return true;
  }

  private async assign(calls: QuotaCalls, { path, fd }: { path: string; fd: number }): Promise<boolean> {
    const current = await calls.project(fd);
    if (current !== 0) return this.isOwn(path, current);
    // What is in it already would not be counted.
    if ((await readdir(path)).length > 0) return false;
    // Fails where there are no quotas, before anything is written down.
    await calls.usage(fd, FIRST_PROJECT);
    await this.prune();
    const id = await this.deps.book.update((files) => this.choose(calls, files, { path, fd }));
    try {
      await calls.setProject(fd, id);
    } catch (error) {
      await this.end(path);
      throw error;
    }
    this.known.set(path, id);
    // Without one the default of XFS would be the limit. Old formats of quotas cannot hold it, and have no default.
    await calls.setLimit(fd, id, "endless").catch((error: unknown) => {
      if (errnoOf(error) === "ERANGE") return;
      this.deps.log.warn("Failed to remove default quota of volume", { path, error: messageOf(error) });
    });
    return true;
  }

  /** Takes out what agents left that died before they could. */
  private async prune(): Promise<void> {
    const gone = (files: ProjectFiles): ReadonlySet<string> =>
      new Set(
        volumeProjects(files.projects)
          .map(({ path }) => path)
          .filter((path) => OWN_PATH.test(path) && !existsSync(path)),
      );
    const { book } = this.deps;
    if (gone(book.read()).size === 0) return;
    await book.update(async (files) => ({ files: withoutProjects(files, gone(files)), result: undefined }));
  }

  /** The id that is recorded for the directory, else the lowest unused one. */
  private async choose(
    calls: QuotaCalls,
    files: ProjectFiles,
    { path, fd }: { path: string; fd: number },
  ): Promise<{ files: ProjectFiles; result: number }> {
    const before = projectOfPath(files, path);
    if (before !== undefined) return { files: withProject(files, { id: before, path }), result: before };
    const taken = takenIds(files);
    let tries = 0;
    for (let id = FIRST_PROJECT; tries < MOST_TRIES; id++) {
      if (taken.has(id)) continue;
      tries++;
      // Files that were removed and are still open count until they are closed.
      const { bytes, inodes } = await calls.usage(fd, id);
      if (bytes === 0 && inodes === 0) return { files: withProject(files, { id, path }), result: id };
    }
    throw new Error(`${MOST_TRIES} project ids are in use but not in /etc/projects`);
  }
}

async function withDirectory<T>(path: string, work: (fd: number) => Promise<T>): Promise<T> {
  const handle: FileHandle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    return await work(handle.fd);
  } finally {
    await handle.close();
  }
}
