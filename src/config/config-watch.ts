import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { Live } from "../lib/live.ts";

export interface ConfigWatchDeps {
  readonly clock: Clock;
  /** Resolves when the watch stands. See lib/file-watch.ts. */
  watch(path: string, options: Abortable & { onChange: () => void }): Promise<void>;
  /** Changes with the file's identity, size and times; undefined when there is none. */
  stamp(path: string, abortable: Abortable): Promise<string | undefined>;
  /** Files and directories that the configuration in force was read from. */
  places(): readonly string[];
  changed(abortable: Abortable): Promise<unknown>;
}

/** A burst of changes (the links of a mounted ConfigMap) is one: quiet for this long, but never later than the other. */
const QUIET_MS = 40;
const LATEST_MS = 200;
/** Watches may fail silently (no watches left, a network filesystem): files are checked this often all the same. */
const LOOK_EVERY_MS = 60_000;

/** Calls `changed` after the files of the configuration changed. Checks nothing while it is not `on`. */
export class ConfigWatch {
  private readonly scopes = new Map<string, AbortScope>();
  /** The state of the files before they were last read; undefined at the start. */
  private stamps = "";
  private quiet: Timer | undefined;
  private since: number | undefined;
  private isDue = false;
  private wake: () => void = () => undefined;

  constructor(
    private readonly deps: ConfigWatchDeps,
    private readonly on: Live<boolean>,
  ) {}

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.on.onChange(() => this.due(), { signal });
    try {
      while (!signal.aborted) {
        this.isDue = false;
        await this.follow(this.on.current ? this.deps.places() : [], signal);
        if (this.on.current) await this.handleIfChanged(signal);
        if (!this.isDue) await this.sleep(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.quiet?.cancel();
      for (const scope of this.scopes.values()) close(scope);
    }
  }

  /** Compares with what was there before the last reading, so that a write during it is not missed. */
  private async handleIfChanged(signal: AbortSignal): Promise<void> {
    const stamps = await this.look(signal);
    if (stamps === this.stamps) return;
    const places = this.deps.places().join();
    await this.deps.changed({ signal });
    this.stamps = stamps;
    // Places that are new have to be watched first.
    if (this.deps.places().join() !== places) this.isDue = true;
  }

  private due(): void {
    this.isDue = true;
    this.wake();
  }

  private async look(signal: AbortSignal): Promise<string> {
    const places = this.deps.places();
    const stamps: string[] = [];
    for (const place of places) {
      const stamp = await this.deps.stamp(place, { signal }).catch(() => "unreadable");
      signal.throwIfAborted();
      stamps.push(stamp ?? "none");
    }
    return `${places.join("\0")}\n${stamps.join(" ")}`;
  }

  private async follow(places: readonly string[], signal: AbortSignal): Promise<void> {
    for (const [place, scope] of this.scopes) {
      if (places.includes(place)) continue;
      this.scopes.delete(place);
      close(scope);
    }
    for (const place of places) {
      if (this.scopes.has(place)) continue;
      const scope = new AbortScope([signal]);
      this.scopes.set(place, scope);
      // A path that cannot be watched is checked periodically.
      await this.deps.watch(place, { signal: scope.signal, onChange: () => this.heard() }).catch(() => undefined);
      signal.throwIfAborted();
    }
  }

  private heard(): void {
    const now = this.deps.clock.now().mono;
    this.since ??= now;
    this.quiet?.cancel();
    const wait = Math.max(0, Math.min(QUIET_MS, this.since + LATEST_MS - now));
    this.quiet = this.deps.clock.after(wait, () => {
      this.since = undefined;
      this.due();
    });
  }

  /** Until a change was heard, or the next look is due. */
  private async sleep(signal: AbortSignal): Promise<void> {
    const scope = new AbortScope([signal]);
    this.wake = () => scope.abort();
    try {
      await this.deps.clock.sleep(LOOK_EVERY_MS, { signal: scope.signal });
    } catch (error) {
      if (signal.aborted) throw error;
    } finally {
      scope.dispose();
    }
  }
}

function close(scope: AbortScope): void {
  scope.abort();
  scope.dispose();
}
