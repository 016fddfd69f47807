import { lstat, readdir } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { Abortable } from "./abort.ts";
import type { Clock } from "./clock.ts";
import {
  type DirectoryEvent,
  type DirectoryWatcher,
  openDirectoryWatcher,
  type WatchDepth,
} from "./directory-events.ts";
import { errnoOf } from "./errors.ts";
import { NameChanges, type PathChange } from "./name-changes.ts";
import { findRoute, type Route } from "./path-route.ts";

export type { PathChange } from "./name-changes.ts";

export interface WatchPathOptions extends Abortable {
  readonly clock: Clock;
  /** Called with each change, in order. `name` is the entry of a watched directory, or the last part of a watched file's path. */
  readonly onChange: (change: PathChange) => void;
  /** Called when a directory cannot be watched (no watches left): only the periodic resync is left then. */
  readonly onError?: (error: unknown) => void;
  /** `fs.watch` forces the fallback, for tests. */
  readonly backend?: "auto" | "fs.watch";
}

/**
 * Watches a file or the entries of a directory, whether it is there yet or not, through every link on the way, until
 * the signal aborts. Resolves once the watch is established: a list made after that misses nothing. A removal is reported even
 * if the name is back at once, a rename over a name is one `changed`, writes in place are reported after 20 ms without another.
 * After lost events or a replaced directory comes `rescan`. It is a fast path: keep a slow periodic resync beside it.
 */
export async function watchPath(path: string, options: WatchPathOptions): Promise<void> {
  if (options.signal.aborted) return;
  const watch = new PathWatch(resolve(path), options);
  const onAbort = (): void => watch.close();
  options.signal.addEventListener("abort", onAbort, { once: true });
  await watch.start();
}

/** Links in a watched directory that are followed, so that a directory of links cannot use up all watches. */
const MOST_FOLLOWED = 256;

interface Rebuild {
  rescan: boolean;
  /** Names whose route has changed: their new targets are reported after the rebuild. */
  readonly moved: Set<string>;
}

class PathWatch {
  private readonly changes: NameChanges;
  private readonly ownName: string;
  private watcher: DirectoryWatcher | undefined;
  private main: Route = { steps: [], target: { kind: "missing" } };
  /** Entries of a watched directory that are links to files. */
  private links = new Map<string, Route>();
  private wanted: Rebuild | undefined;
  private rebuilding: Promise<void> | undefined;
  private closed = false;

  constructor(
    private readonly path: string,
    private readonly options: WatchPathOptions,
  ) {
    this.ownName = basename(path);
    this.changes = new NameChanges(options.clock, (change) => this.report(change));
  }

  async start(): Promise<void> {
    this.watcher = await openDirectoryWatcher(this.options, (event) => this.handle(event));
    if (this.closed) return this.watcher.close();
    const names = await this.build();
    this.changes.know(names);
  }

  close(): void {
    this.closed = true;
    this.changes.clear();
    this.watcher?.close();
  }

  private report(change: PathChange): void {
    if (!this.closed) this.options.onChange(change);
  }

  private handle(event: DirectoryEvent): void {
    if (this.closed) return;
    if (event.what === "overflow") return this.rebuild({ rescan: true });
    if (event.what === "gone") return this.rebuild(this.isDirectory() ? { rescan: true } : { moved: this.ownName });
    const { directory, name, what } = event;
    if (what !== "written") this.hearStep(directory, name, what === "deleted" || what === "movedFrom");
    const { target } = this.main;
    if (target.kind === "directory" && target.directory === directory) {
      this.changes.feed(name, what);
      if (this.links.has(name)) {
        if (what !== "written") this.rebuild({});
      } else if (what === "created" || what === "movedTo") void this.followIfLink(directory, name);
    }
    for (const [tracked, route] of this.tracked()) {
      if (route.target.kind !== "file" || route.target.directory !== directory || route.target.name !== name) continue;
      this.changes.feed(tracked, what);
      if (what === "created" || what === "movedTo") this.rebuild({});
    }
  }

  private async followIfLink(directory: string, name: string): Promise<void> {
    const stat = await lstat(join(directory, name)).catch(() => undefined);
    if (stat?.isSymbolicLink() && !this.closed) this.rebuild({});
  }

  /** A name on the way has come, gone or been swapped. */
  private hearStep(directory: string, name: string, isLoss: boolean): void {
    const leadsThrough = (route: Route): boolean =>
      route.steps.some((step) => step.directory === directory && step.name === name);
    if (this.isDirectory() && leadsThrough(this.main)) return this.rebuild({ rescan: true });
    for (const [tracked, route] of this.tracked()) {
      if (!leadsThrough(route)) continue;
      if (isLoss && this.changes.has(tracked)) this.changes.feed(tracked, "deleted");
      this.rebuild({ moved: tracked });
    }
  }

  private isDirectory(): boolean {
    return this.main.target.kind === "directory";
  }

  /** The paths that lead to one file each, with the name under which they are reported. */
  private tracked(): Iterable<readonly [string, Route]> {
    return this.isDirectory() ? this.links : [[this.ownName, this.main]];
  }

  private rebuild(why: { rescan?: boolean; moved?: string }): void {
    this.wanted ??= { rescan: false, moved: new Set() };
    if (why.rescan) this.wanted.rescan = true;
    if (why.moved !== undefined) this.wanted.moved.add(why.moved);
    this.rebuilding ??= this.rebuildAll().finally(() => {
      this.rebuilding = undefined;
    });
  }

  private async rebuildAll(): Promise<void> {
    for (let why = this.wanted; why !== undefined && !this.closed; why = this.wanted) {
      this.wanted = undefined;
      const before = this.main.target;
      const names = await this.build();
      const after = this.main.target;
      if (why.rescan || directoryOf(before) !== directoryOf(after)) {
        this.changes.clear();
        this.changes.know(names);
        this.report({ kind: "rescan", name: "" });
        continue;
      }
      for (const [tracked, route] of this.tracked()) {
        if (!why.moved.has(tracked)) continue;
        if (route.target.kind === "file") this.changes.feed(tracked, "movedTo");
        else if (this.changes.has(tracked)) this.changes.feed(tracked, "deleted");
      }
    }
  }

  /** Finds where the path leads now and watches all of the way; the answer is what is there. */
  private async build(): Promise<readonly string[]> {
    const used = new Set<string>();
    const watch = (directory: string, depth: WatchDepth): void => {
      used.add(directory);
      this.watchOne(directory, depth);
    };
    const main = await findRoute("/", this.path.split("/"), (directory) => watch(directory, "names"));
    const links = new Map<string, Route>();
    let names: string[] = [];
    if (main.target.kind === "file") {
      watch(main.target.directory, "content");
      names = [this.ownName];
    } else if (main.target.kind === "directory") {
      const { directory } = main.target;
      watch(directory, "content");
      const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
      names = entries.map((entry) => entry.name);
      const found = entries.filter((entry) => entry.isSymbolicLink()).slice(0, MOST_FOLLOWED);
      for (const { name } of found) {
        const route = await findRoute(directory, [name], (passed) => watch(passed, "names"));
        if (route.target.kind === "file") watch(route.target.directory, "content");
        // The link itself is an entry of the directory and reported as such; only what lies behind it counts here.
        links.set(name, { steps: route.steps.slice(1), target: route.target });
      }
    }
    if (this.closed) return [];
    this.watcher?.retain(used);
    this.main = main;
    this.links = links;
    return names;
  }

  private watchOne(directory: string, depth: WatchDepth): void {
    if (this.closed) return;
    try {
      this.watcher?.watch(directory, depth);
    } catch (error) {
      const code = errnoOf(error);
      // Gone again, or not ours to read: the way ends here and a later change of a name above leads on.
      if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "EACCES") this.options.onError?.(error);
    }
  }
}

function directoryOf(target: Route["target"]): string | undefined {
  return target.kind === "directory" ? target.directory : undefined;
}
