import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import { watchPath } from "../../lib/file-watch.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";

/** An executable of a driver, and what changes when it is replaced. */
export interface DriverFile {
  readonly path: string;
  readonly identity: string;
}

export interface DriverDirectoriesDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  /** Called with the drivers, by the names of their directories, after each scan. */
  found(drivers: ReadonlyMap<string, DriverFile>): void;
}

/** An installer writes and then changes the mode: one scan for both, in milliseconds. */
const SETTLE_MS = 50;
/** A scan without an event, in milliseconds: for watches that the kernel refused. */
const RESCAN_MS = 60_000;

/**
 * Follows the drivers that are installed below a directory until the signal aborts: `VENDOR~DRIVER/DRIVER`, or
 * `DRIVER/DRIVER`. Names that begin with a dot are ignored. The directory may be missing.
 */
export class DriverDirectories {
  private readonly wakes: Wakes;
  private readonly watched = new Map<string, AbortScope>();
  /** Of the last scan. */
  private known: ReadonlyMap<string, DriverFile> = new Map();
  private lastError = "";

  constructor(
    private readonly deps: DriverDirectoriesDeps,
    private readonly root: string,
  ) {
    this.wakes = new Wakes(deps.clock);
  }

  async run({ signal }: Abortable): Promise<void> {
    try {
      await this.watch(this.root, signal);
      while (!signal.aborted) {
        this.wakes.clear();
        await this.scan(signal);
        await this.wakes.sleep(RESCAN_MS, signal);
        if (!signal.aborted) await this.deps.clock.sleep(SETTLE_MS, { signal }).catch(() => undefined);
      }
    } finally {
      for (const path of [...this.watched.keys()]) this.unwatch(path);
    }
  }

  private async scan(signal: AbortSignal): Promise<void> {
    try {
      const entries = await readdir(this.root, { withFileTypes: true }).catch(ifMissing([]));
      const names = entries
        .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
        .map(({ name }) => name);
      const paths = new Set([this.root, ...names.map((name) => join(this.root, name))]);
      for (const path of [...this.watched.keys()]) if (!paths.has(path)) this.unwatch(path);
      // Watched before they are looked at: what comes in between is heard.
      for (const path of paths) await this.watch(path, signal);
      const drivers = new Map<string, DriverFile>();
      const problems: unknown[] = [];
      for (const name of names) {
        const path = join(this.root, name, executableOf(name));
        // One that cannot be looked at stays as it was, and keeps no other from being found.
        const identity = await identityOf(path).catch((error: unknown) => {
          problems.push(error);
          return this.known.get(name)?.identity;
        });
        if (identity !== undefined) drivers.set(name, { path, identity });
      }
      this.known = drivers;
      if (!signal.aborted) this.deps.found(drivers);
      if (problems.length === 0) this.lastError = "";
      else this.warn(problems[0]);
    } catch (error) {
      this.warn(error);
    }
  }

  private async watch(path: string, signal: AbortSignal): Promise<void> {
    if (this.watched.has(path) || signal.aborted) return;
    const scope = new AbortScope([signal]);
    this.watched.set(path, scope);
    await watchPath(path, {
      clock: this.deps.clock,
      signal: scope.signal,
      onChange: () => this.wakes.wake(),
      onError: (error) => this.warn(error),
    });
  }

  private unwatch(path: string): void {
    const scope = this.watched.get(path);
    this.watched.delete(path);
    scope?.abort();
    scope?.dispose();
  }

  private warn(error: unknown): void {
    const message = messageOf(error);
    if (message === this.lastError) return;
    this.lastError = message;
    this.deps.log.warn("Failed to watch directory of volume drivers", { path: this.root, error: message });
  }
}

/** `driver` of `vendor~driver`. */
function executableOf(name: string): string {
  return name.split("~").at(-1) ?? name;
}

async function identityOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(ifMissing(undefined));
  if (found === undefined || !found.isFile()) return undefined;
  return [found.dev, found.ino, found.size, found.mtimeNs, found.mode].join(":");
}

function ifMissing<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return instead;
    throw error;
  };
}
