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

/**
 * Measures a tree a little at a time: each `advance` goes on where the last one stopped. Counts what is allocated, a
 * file with several names once, and nothing that is mounted below.
 */
export class UsageWalk {
  private bytes = 0;
  private inodes = 0;
  private readonly linked = new Set<string>();
  private readonly entries: AsyncGenerator<WalkedEntry, void, undefined>;

  constructor(
    private readonly deps: { readonly access: TreeAccess; readonly clock: Clock },
    private readonly path: string,
  ) {
    this.entries = this.walk();
  }

  /** The whole usage once the tree was walked, undefined while there is more. Close a walk that is given up. */
  async advance(budgetMs: number, options: Partial<Abortable> = {}): Promise<TreeUsage | undefined> {
    const { clock } = this.deps;
    const end = clock.now().mono + budgetMs;
    try {
      while (clock.now().mono < end) {
        options.signal?.throwIfAborted();
        const { done, value } = await this.entries.next();
        if (done === true || value === undefined) return { bytes: this.bytes, inodes: this.inodes };
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
      this.linked.add(key);
    }
    this.bytes += stats.blocks * 512;
    this.inodes += 1;
  }
}
