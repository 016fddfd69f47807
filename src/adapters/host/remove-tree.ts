import { realpath } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";
import { HostError, hostError } from "./host-error.ts";
import { type MountEntry, mountsWithin } from "./mount-table.ts";
import type { TreeAccess, TreeDirectory, TreeEntry } from "./tree-access.ts";

export interface RemoveTreeDeps {
  readonly access: TreeAccess;
  /** At least the mounts at or below the path. */
  readonly mountTable: (path: string) => readonly MountEntry[];
  /** Called before each directory is opened; a test changes the machine here. */
  readonly onOpen?: (path: string) => Promise<void>;
}

export interface RemoveOptions extends Partial<Abortable> {
  /**
   * Only the agent writes there: the mount table, which takes milliseconds on a full node, is not asked first. A mount
   * is not entered in this case either; what was removed before it was met is gone then.
   */
  readonly isOwn?: boolean;
}

/** Deeper directories are moved up to the top of the tree, so that neither descriptors nor the stack run out. */
const DEEPEST = 200;
/** Unlinks in flight at once: four are as fast as sixteen here, and leave threads for others. */
const SIDE_BY_SIDE = 4;
/** A directory that is written to while it is emptied is emptied this often. */
const ROUNDS = 4;

/**
 * Removes `path` and all below it, or a single file or link. Nothing that is mounted at or below it is ever entered:
 * it is refused before anything is touched, and a mount that appears meanwhile ends the removal with `Mounted`.
 * Links are removed, never followed. What is gone already is success; may be repeated after a failure.
 */
export async function removeTree(deps: RemoveTreeDeps, path: string, options: RemoveOptions = {}): Promise<void> {
  const parent = await realParent(path);
  if (parent === undefined) return;
  const name = basename(normalize(path));
  const real = join(parent, name);
  const mounted = options.isOwn === true ? [] : mountsWithin(deps.mountTable(real), real);
  if (mounted.length > 0) {
    const few = mounted.slice(0, 5).map(({ target }) => target);
    const more = mounted.length > few.length ? ` and ${mounted.length - few.length} more` : "";
    throw new HostError("Mounted", `remove ${path}: mounted below it: ${few.join(", ")}${more}`);
  }
  const directory = await deps.access.openParent(parent);
  try {
    await new Removal(deps, options.signal).remove(directory, { name: Buffer.from(name), path: real });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw hostError(`remove ${path}`, error);
  } finally {
    await directory.close();
  }
}

/** The real directory that holds `path`, or undefined when there is none. Links above the tree are the owner's choice. */
async function realParent(path: string): Promise<string | undefined> {
  const normal = normalize(path);
  const parts = normal.split("/").filter(Boolean);
  if (!path.startsWith("/") || path.includes("\0") || path.split("/").includes("..") || parts.length < 2) {
    throw new HostError("InvalidArgument", `${JSON.stringify(path)} is not a path that may be removed`);
  }
  try {
    return await realpath(dirname(normal.replace(/\/+$/, "")));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw hostError(`remove ${path}`, error);
  }
}

interface EntryPath {
  readonly name: Buffer;
  /** For messages only: never used to reach anything. */
  readonly path: string;
}

class Removal {
  private top: TreeDirectory | undefined;
  private moved = 0;

  constructor(
    private readonly deps: RemoveTreeDeps,
    private readonly signal: AbortSignal | undefined,
  ) {}

  async remove(parent: TreeDirectory, entry: EntryPath): Promise<void> {
    await this.removeAny(parent, { ...entry, kind: "directory" }, 0);
  }

  private async removeAny(
    parent: TreeDirectory,
    entry: EntryPath & Pick<TreeEntry, "kind">,
    depth: number,
  ): Promise<void> {
    this.signal?.throwIfAborted();
    if (entry.kind !== "directory" && (await this.unlink(parent, entry))) return;
    await this.deps.onOpen?.(entry.path);
    const child = await this.open(parent, entry);
    if (child === "missing") return;
    if (child === "noDirectory") {
      if (await this.unlink(parent, entry)) return;
      throw new HostError("Busy", `${entry.path} changed its type during removal`);
    }
    try {
      this.top ??= child;
      await this.removeContent(parent, { entry, child }, depth);
    } finally {
      await child.close();
    }
  }

  /** Empties the open directory and removes it from its parent. */
  private async removeContent(
    parent: TreeDirectory,
    { entry, child }: { entry: EntryPath; child: TreeDirectory },
    depth: number,
  ): Promise<void> {
    for (let round = 0; ; round++) {
      for (;;) {
        const entries = await this.deps.access.list(child);
        if (entries.length === 0) break;
        await this.removeEntries(child, { entries, path: entry.path }, depth);
      }
      try {
        return await this.deps.access.removeDirectory(parent, entry.name);
      } catch (error) {
        const code = errnoOf(error);
        if (code === "ENOENT") return;
        if (code === "EBUSY")
          throw new HostError("Mounted", `remove ${entry.path}: something was mounted there`, { cause: error });
        if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
        if (round >= ROUNDS) throw new HostError("Busy", `${entry.path} is written to during removal`);
      }
    }
  }

  private async removeEntries(
    directory: TreeDirectory,
    { entries, path }: { entries: readonly TreeEntry[]; path: string },
    depth: number,
  ): Promise<void> {
    const paths = entries.map(({ name, kind }) => ({ name, kind, path: `${path}/${name.toString()}` }));
    // Files side by side; directories one after the other, so that the open descriptors are as many as the depth.
    const files = paths.filter(({ kind }) => kind !== "directory").values();
    const worker = async (): Promise<void> => {
      for (const entry of files) await this.removeAny(directory, entry, depth + 1);
    };
    const results = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, worker));
    for (const result of results) if (result.status === "rejected") throw result.reason;
    for (const entry of paths) {
      if (entry.kind !== "directory") continue;
      if (depth < DEEPEST || !(await this.moveUp(directory, entry))) await this.removeAny(directory, entry, depth + 1);
    }
  }

  /** Moves a deep directory to the top of the tree, whose next listing finds it. False when it must be entered here. */
  private async moveUp(parent: TreeDirectory, entry: EntryPath): Promise<boolean> {
    if (this.top === undefined || this.top === parent) return false;
    const name = Buffer.from(`.removing-${process.pid}-${++this.moved}`);
    try {
      // A file or an empty directory of that name may be replaced: all here is to go.
      await this.deps.access.rename({ parent, name: entry.name }, { parent: this.top, name });
      return true;
    } catch (error) {
      const code = errnoOf(error);
      if (code === "EBUSY" || code === "EXDEV")
        throw new HostError("Mounted", `remove ${entry.path}: something was mounted there`);
      return code === "ENOENT";
    }
  }

  private async open(
    parent: TreeDirectory,
    { name, path }: EntryPath,
  ): Promise<TreeDirectory | "missing" | "noDirectory"> {
    try {
      return await this.deps.access.openChild(parent, name);
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT") return "missing";
      if (code === "ENOTDIR" || code === "ELOOP") return "noDirectory";
      if (code === "EXDEV")
        throw new HostError("Mounted", `remove ${path}: something was mounted there`, { cause: error });
      throw error;
    }
  }

  /** Removes what is no directory; false when it is one. */
  private async unlink(parent: TreeDirectory, { name, path }: EntryPath): Promise<boolean> {
    try {
      await this.deps.access.unlink(parent, name);
      return true;
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT") return true;
      if (code === "EISDIR") return false;
      if (code === "EBUSY")
        throw new HostError("Mounted", `remove ${path}: something was mounted there`, { cause: error });
      throw error;
    }
  }
}
