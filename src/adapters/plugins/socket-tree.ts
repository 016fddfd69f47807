import { lstat, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { type DirectoryEvent, type DirectoryWatcher, openDirectoryWatcher } from "../../lib/directory-events.ts";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";
import { kindOf } from "../host/path-kind.ts";

/** Path of each socket → its identity, which changes when the socket is replaced. */
export type Sockets = ReadonlyMap<string, string>;

export interface SocketTreeDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  /** Called with all sockets after each change, beginning with those that are there. */
  found(sockets: Sockets): void;
}

/** A registrar binds its socket and then changes its mode: one scan for both, in milliseconds. */
const SETTLE_MS = 20;
/** A scan without an event, in milliseconds: for watches that the kernel refused. */
const RESCAN_MS = 60_000;
const DIRECTORY_MODE = 0o750;
/** Bounds what a directory that someone filled costs. */
const MOST_DEPTH = 8;
const MOST_ENTRIES = 4096;
/** Links that are asked about at once: each takes a child process. */
const MOST_ASKED = 4;

/**
 * Follows the sockets below a directory until the signal aborts. Names that begin with a dot are ignored, links lead to
 * sockets but not into directories, other files do not matter. Creates the directory if it is missing.
 */
export class SocketTree {
  private readonly wakes: Wakes;
  /** Counts the removals at a path: a socket that is created again may get the inode of the one before. */
  private readonly generations = new Map<string, number>();
  private readonly links = new Map<string, Link>();
  private asked = 0;
  /** Links that wait until others were asked about. */
  private unasked: Link[] = [];
  private watcher: DirectoryWatcher | undefined;
  private lastError = "";

  constructor(
    private readonly deps: SocketTreeDeps,
    private readonly root: string,
  ) {
    this.wakes = new Wakes(deps.clock);
  }

  async run({ signal }: Abortable): Promise<void> {
    // Children that stat links end with the scope.
    const scope = new AbortScope([signal]);
    this.watcher = await openDirectoryWatcher(this.deps, (event) => this.hear(event));
    try {
      while (!signal.aborted) {
        this.wakes.clear();
        await this.scan(scope);
        await this.wakes.sleep(RESCAN_MS, signal);
        if (!signal.aborted) await this.deps.clock.sleep(SETTLE_MS, { signal }).catch(() => undefined);
      }
    } finally {
      this.watcher.close();
      scope.abort();
      scope.dispose();
    }
  }

  private hear(event: DirectoryEvent): void {
    if (event.what === "written") return;
    if (event.what === "deleted" || event.what === "movedFrom") {
      const path = join(event.directory, event.name);
      this.generations.set(path, (this.generations.get(path) ?? 0) + 1);
    }
    this.wakes.wake();
  }

  private async scan(options: Abortable): Promise<void> {
    try {
      await mkdir(this.root, { recursive: true, mode: DIRECTORY_MODE });
      const sockets = new Map<string, string>();
      const directories = new Set<string>();
      const seen = new Set<string>();
      await this.walk(this.root, { depth: 0, sockets, directories, seen, options });
      this.watcher?.retain(directories);
      for (const path of this.generations.keys()) if (!sockets.has(path)) this.generations.delete(path);
      for (const path of this.links.keys()) if (!seen.has(path)) this.links.delete(path);
      this.unasked = this.unasked.filter((link) => this.links.get(link.path) === link);
      if (!options.signal.aborted) this.deps.found(sockets);
    } catch (error) {
      this.warn(error);
    }
  }

  private async walk(directory: string, into: Walk): Promise<void> {
    into.directories.add(directory);
    try {
      // Before it is listed: what comes in between is heard.
      this.watcher?.watch(directory, "names");
    } catch (error) {
      if (errnoOf(error) !== "ENOENT" && errnoOf(error) !== "ENOTDIR") this.warn(error);
    }
    const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
      if (into.depth === 0) throw error;
      return [];
    });
    for (const entry of entries) {
      if (entry.name.startsWith(".")) continue;
      if (into.seen.size >= MOST_ENTRIES) return this.warn(new Error(`it has more than ${MOST_ENTRIES} entries`));
      const path = join(directory, entry.name);
      into.seen.add(path);
      if (entry.isDirectory() && into.depth < MOST_DEPTH) await this.walk(path, { ...into, depth: into.depth + 1 });
      else if (entry.isSocket() || entry.isSymbolicLink()) {
        const identity = await this.identify(path, entry.isSymbolicLink(), into.options);
        if (identity !== undefined) into.sockets.set(path, identity);
      }
    }
  }

  private async identify(path: string, isLink: boolean, options: Abortable): Promise<string | undefined> {
    const stat = await lstat(path, { bigint: true }).catch(() => undefined);
    if (stat === undefined) return undefined;
    const identity = `${stat.dev}:${stat.ino}:${stat.birthtimeNs}:${this.generations.get(path) ?? 0}`;
    return isLink && !this.leadsToSocket(path, identity, options) ? undefined : identity;
  }

  /** A link may lead to a filesystem that hangs: whoever stats it is not waited for, and its answer is another scan. */
  private leadsToSocket(path: string, identity: string, options: Abortable): boolean {
    const known = this.links.get(path);
    if (known?.identity === identity) return known.isSocket;
    const link = { path, identity, isSocket: false };
    this.links.set(path, link);
    this.unasked.push(link);
    this.askNext(options);
    return false;
  }

  private askNext(options: Abortable): void {
    if (this.asked >= MOST_ASKED || options.signal.aborted) return;
    const link = this.unasked.shift();
    if (link === undefined) return;
    this.asked++;
    const answered = (isSocket: boolean): void => {
      this.asked--;
      link.isSocket = isSocket;
      if (isSocket && !options.signal.aborted) this.wakes.wake();
      this.askNext(options);
    };
    kindOf(this.deps.clock, link.path, options).then(
      (kind) => answered(kind === "socket"),
      () => answered(false),
    );
  }

  private warn(error: unknown): void {
    const message = messageOf(error);
    if (message === this.lastError) return;
    this.lastError = message;
    this.deps.log.warn("Failed to watch directory of plugin sockets", { path: this.root, error: message });
  }
}

interface Link {
  readonly path: string;
  readonly identity: string;
  isSocket: boolean;
}

interface Walk {
  readonly depth: number;
  readonly sockets: Map<string, string>;
  readonly directories: Set<string>;
  /** Everything that is there. */
  readonly seen: Set<string>;
  readonly options: Abortable;
}
