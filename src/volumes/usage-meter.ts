import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** What a directory takes up. */
export interface Usage {
  readonly bytes: number;
  readonly inodes: number;
}

/** A usage, when it was found out (wall-clock milliseconds) and how. */
export interface MeasuredUsage extends Usage {
  readonly at: number;
  readonly by: "quota" | "walk" | "filesystem";
}

/** A directory whose usage counts: an emptyDir, a log directory. */
export interface MeteredDirectory {
  readonly path: string;
  /** A filesystem of its own (a tmpfs): it knows its usage, nothing has to be walked. */
  readonly isFilesystem?: boolean;
  /** The filesystem below may count it: it is asked before anything is walked. */
  readonly mayBeCounted?: boolean;
}

/** A walk through a tree that can be cut into steps; `LinuxVolumeHost.measure` gives one. */
export interface UsageWalk {
  /** What was counted until now: the tree takes up at least that. */
  readonly soFar: Usage;
  /** Undefined while there is more. */
  advance(budgetMs: number, options: Abortable): Promise<Usage | undefined>;
  close(): Promise<void>;
}

export interface UsageHost {
  measure(path: string): Promise<UsageWalk>;
  /** What the filesystem has counted, at once; undefined where it does not. Never rejects. */
  countedUsage(path: string): Promise<Usage | undefined>;
  filesystemUsage(path: string): Promise<Usage>;
}

export interface AdvanceOptions extends Abortable {
  readonly budgetMs: number;
  /** Monotonic milliseconds: what was measured since then is not measured again. */
  readonly since: number;
}

/** What is known of a directory. All times are monotonic. */
interface Entry {
  usage?: MeasuredUsage;
  /** Measured as a whole, or found to be unmeasurable. */
  doneAt: number;
  /** Worked at last. */
  triedAt: number;
  walk?: UsageWalk;
  /** What the walk that goes on has counted. */
  soFar?: MeasuredUsage;
  /** Why it could not be measured the last time: the same is not logged again. */
  problem?: string;
}

/** How long one directory is walked before the next one gets its turn. */
const TURN_MS = 10;
const NOTHING: Usage = { bytes: 0, inodes: 0 };

/**
 * Measures directories a little at a time: each `advance` takes no longer than its budget and goes on where the last one
 * stopped, so that a tree of millions of files costs as little at a time as a small one. Directories take turns: a large one
 * does not keep the others waiting. One `advance` at a time.
 */
export class UsageMeter {
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly deps: { host: UsageHost; clock: Clock; log: Logger }) {}

  /**
   * The newest whole measurement of a directory, or what the walk that goes on has counted if that is more: whoever has
   * so many files that a walk takes long must not count for nothing.
   */
  usage(path: string): MeasuredUsage | undefined {
    const { usage, soFar } = this.entries.get(path) ?? {};
    if (usage === undefined || soFar === undefined) return usage ?? soFar;
    if (soFar.bytes <= usage.bytes && soFar.inodes <= usage.inodes) return usage;
    return { ...soFar, bytes: Math.max(usage.bytes, soFar.bytes), inodes: Math.max(usage.inodes, soFar.inodes) };
  }

  /** Whether the directory was measured since then, or could not be. */
  isDone(path: string, since: number): boolean {
    return (this.entries.get(path)?.doneAt ?? Number.NEGATIVE_INFINITY) >= since;
  }

  /** Spends the budget on these directories. True when each was measured since the time that is given. */
  async advance(directories: readonly MeteredDirectory[], options: AdvanceOptions): Promise<boolean> {
    const { clock } = this.deps;
    const { signal, since } = options;
    const end = clock.now().mono + options.budgetMs;
    for (;;) {
      signal.throwIfAborted();
      const directory = this.next(directories, since);
      if (directory === undefined) return true;
      const left = end - clock.now().mono;
      if (left <= 0) return false;
      await this.measure(directory, { signal, budgetMs: Math.min(left, TURN_MS) });
    }
  }

  /** Forgets the directories that were not worked at since then, and closes their walks. */
  async forget(before: number): Promise<void> {
    for (const [path, entry] of [...this.entries]) {
      if (entry.triedAt >= before) continue;
      this.entries.delete(path);
      await entry.walk?.close();
    }
  }

  /** Of those that are not done the one that waited longest. */
  private next(directories: readonly MeteredDirectory[], since: number): MeteredDirectory | undefined {
    let [found, oldest]: [MeteredDirectory | undefined, number] = [undefined, Number.POSITIVE_INFINITY];
    for (const directory of directories) {
      const triedAt = this.entries.get(directory.path)?.triedAt ?? Number.NEGATIVE_INFINITY;
      if (this.isDone(directory.path, since) || (found !== undefined && triedAt >= oldest)) continue;
      [found, oldest] = [directory, triedAt];
    }
    return found;
  }

  /** The filesystem, where it knows; undefined for what has to be walked. */
  private async ask(directory: MeteredDirectory, { walk }: Entry): Promise<Omit<MeasuredUsage, "at"> | undefined> {
    const { host } = this.deps;
    if (directory.isFilesystem === true) return { ...(await host.filesystemUsage(directory.path)), by: "filesystem" };
    if (directory.mayBeCounted !== true || walk !== undefined) return undefined;
    const usage = await host.countedUsage(directory.path);
    return usage && { ...usage, by: "quota" };
  }

  private async walk(
    path: string,
    entry: Entry,
    options: Abortable & { budgetMs: number },
  ): Promise<Omit<MeasuredUsage, "at"> | undefined> {
    entry.walk ??= await this.deps.host.measure(path);
    const usage = await entry.walk.advance(options.budgetMs, options);
    return usage && { ...usage, by: "walk" };
  }

  private async measure(directory: MeteredDirectory, options: Abortable & { budgetMs: number }): Promise<void> {
    const { clock, log } = this.deps;
    const { path } = directory;
    const entry = this.entries.get(path) ?? { doneAt: Number.NEGATIVE_INFINITY, triedAt: 0 };
    this.entries.set(path, entry);
    try {
      const usage = (await this.ask(directory, entry)) ?? (await this.walk(path, entry, options));
      const { wall, mono } = clock.now();
      entry.triedAt = mono;
      if (usage === undefined) {
        entry.soFar = { ...(entry.walk?.soFar ?? NOTHING), at: wall, by: "walk" };
        return;
      }
      entry.usage = { ...usage, at: wall };
      delete entry.problem;
    } catch (error) {
      if (options.signal.aborted) throw error;
      const problem = messageOf(error);
      if (problem !== entry.problem) log.warn("Failed to measure directory", { path, error: problem });
      entry.problem = problem;
    }
    entry.triedAt = clock.now().mono;
    entry.doneAt = entry.triedAt;
    const { walk } = entry;
    delete entry.walk;
    delete entry.soFar;
    await walk?.close();
  }
}
