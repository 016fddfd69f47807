import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** What a place takes up. */
export interface Usage {
  readonly bytes: number;
  readonly inodes: number;
}

/** A usage, and when it was found out (wall-clock milliseconds). */
export interface MeasuredUsage extends Usage {
  readonly at: number;
}

/** A directory whose usage counts: an emptyDir, a log directory, a writable layer. */
export interface MeteredPlace {
  readonly path: string;
  /** A filesystem of its own (a tmpfs): it knows its usage, nothing has to be walked. */
  readonly isFilesystem?: boolean;
}

/** A walk through a tree that can be cut into steps; `LinuxVolumeHost.measure` gives one. */
export interface UsageWalk {
  /** Undefined while there is more. */
  advance(budgetMs: number, options: Abortable): Promise<Usage | undefined>;
  close(): Promise<void>;
}

export interface UsageHost {
  measure(path: string): Promise<UsageWalk>;
  filesystemUsage(path: string): Promise<Usage>;
}

/**
 * Measures places a little at a time: each `advance` takes no longer than its budget and goes on where the last one
 * stopped, so that a tree of millions of files costs as little at a time as a small one.
 */
export class UsageMeter {
  private readonly walks = new Map<string, UsageWalk>();
  private readonly measured = new Map<string, MeasuredUsage>();
  /** Places that this round has not finished. */
  private pending: string[] = [];

  constructor(private readonly deps: { host: UsageHost; clock: Clock; log: Logger }) {}

  /** The newest whole measurement of a place. */
  usage(path: string): MeasuredUsage | undefined {
    return this.measured.get(path);
  }

  /** Spends the budget on these places. True when each was measured once since the round began. */
  async advance(places: readonly MeteredPlace[], options: Abortable & { budgetMs: number }): Promise<boolean> {
    const { clock } = this.deps;
    const byPath = new Map(places.map((place) => [place.path, place]));
    await this.forgetOthers(byPath);
    if (this.pending.length === 0) this.pending = [...byPath.keys()];
    const end = clock.now().mono + options.budgetMs;
    for (;;) {
      options.signal.throwIfAborted();
      const path = this.pending[0];
      const place = path === undefined ? undefined : byPath.get(path);
      if (path === undefined || place === undefined) return true;
      const left = end - clock.now().mono;
      if (left <= 0) return false;
      if (!(await this.measure(place, { signal: options.signal, budgetMs: left }))) return false;
      this.pending.shift();
    }
  }

  /** True when the place is done for this round, also if it cannot be measured. */
  private async measure(place: MeteredPlace, options: Abortable & { budgetMs: number }): Promise<boolean> {
    const { host, clock, log } = this.deps;
    const { path } = place;
    try {
      if (place.isFilesystem === true) {
        this.measured.set(path, { ...(await host.filesystemUsage(path)), at: clock.now().wall });
        return true;
      }
      const walk = this.walks.get(path) ?? (await host.measure(path));
      this.walks.set(path, walk);
      const usage = await walk.advance(options.budgetMs, options);
      if (usage === undefined) return false;
      this.measured.set(path, { ...usage, at: clock.now().wall });
    } catch (error) {
      if (options.signal.aborted) throw error;
      log.warn("a directory could not be measured", { path, error: messageOf(error) });
    }
    await this.stop(path);
    return true;
  }

  private async forgetOthers(places: ReadonlyMap<string, MeteredPlace>): Promise<void> {
    this.pending = this.pending.filter((path) => places.has(path));
    for (const path of [...this.walks.keys()]) if (!places.has(path)) await this.stop(path);
    for (const path of [...this.measured.keys()]) if (!places.has(path)) this.measured.delete(path);
  }

  private async stop(path: string): Promise<void> {
    const walk = this.walks.get(path);
    this.walks.delete(path);
    await walk?.close();
  }
}
