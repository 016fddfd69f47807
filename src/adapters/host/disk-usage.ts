import { lstat, stat } from "node:fs/promises";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { hostError } from "./host-error.ts";
import type { TreeAccess } from "./tree-access.ts";
import { orGone, type WalkedEntry, walkTree } from "./tree-walk.ts";

/** What a tree takes up. */
export interface TreeUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** Files with several names that are remembered: a pod may make any number of them, and the agent has little memory. */
const MOST_LINKED = 100_000;

/**
 * Measures a tree a little at a time: each `advance` goes on where the last one stopped. Counts what is allocated, a
 * file with several names once, and nothing that is mounted below. Past a number of files with several names each name
 * counts for its part of the file, which is the same unless names are made or removed meanwhile.
 */
export class UsageWalk {
  private bytes = 0;
  private inodes = 0;
  private readonly linked = new Set<string>();
  private readonly entries: AsyncGenerator<WalkedEntry, void, undefined>;

  constructor(
    private readonly deps: { readonly access: TreeAccess; readonly clock: Clock; readonly mostLinked?: number },
    private readonly path: string,
  ) {
    this.entries = this.walk();
  }

  /** What was counted until now. */
  get soFar(): TreeUsage {
    return { bytes: Math.round(this.bytes), inodes: Math.round(this.inodes) };
  }

  /** The whole usage once the tree was walked, undefined while there is more. Close a walk that is given up. */
  async advance(budgetMs: number, options: Partial<Abortable> = {}): Promise<TreeUsage | undefined> {
    const { clock } = this.deps;
    const end = clock.now().mono + budgetMs;
    try {
      while (clock.now().mono < end) {
        options.signal?.throwIfAborted();
        const { done, value } = await this.entries.next();
        if (done === true || value === undefined) return this.soFar;
        this.count(value.stats);
      }
      return undefined;
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw hostError(`measure ${this.path}`, error);
    }
  }

  async close(): Promise<void> {
    await this.entries.return();
  }

  private async *walk(): AsyncGenerator<WalkedEntry, void, undefined> {
    const { access } = this.deps;
    const found = await orGone(lstat(this.path));
    if (found === undefined) return;
    if (!found.isDirectory()) return this.count(found);
    const top = await access.openParent(this.path);
    try {
      this.count(await stat(`/proc/self/fd/${top.fd}`));
      yield* walkTree(access, top);
    } finally {
      await top.close();
    }
  }

  private count(stats: { dev: number; ino: number; nlink: number; blocks: number; isDirectory(): boolean }): void {
    if (stats.nlink > 1 && !stats.isDirectory()) {
      const key = `${stats.dev}:${stats.ino}`;
      if (this.linked.has(key)) return;
      if (this.linked.size >= (this.deps.mostLinked ?? MOST_LINKED)) return this.add(stats.blocks, stats.nlink);
      this.linked.add(key);
    }
    this.add(stats.blocks, 1);
  }

  private add(blocks: number, names: number): void {
    this.bytes += (blocks * 512) / names;
    this.inodes += 1 / names;
  }
}
