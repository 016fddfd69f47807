import { type FSWatcher, watch as fsWatch, lstatSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Clock } from "./clock.ts";
import { Inotify, type InotifyEvent, MASK } from "./inotify.ts";

/** What happened to a name in a watched directory. `gone`: the directory itself; `overflow`: events were lost. */
export type DirectoryEvent =
  | {
      readonly what: "created" | "deleted" | "movedTo" | "movedFrom" | "written";
      readonly directory: string;
      readonly name: string;
    }
  | { readonly what: "gone"; readonly directory: string }
  | { readonly what: "overflow" };

/** `names`: only creation, removal and renames; `content`: writes too. */
export type WatchDepth = "names" | "content";

/** Watches directories (never files: a watched file is lost at the first rename over it). */
export interface DirectoryWatcher {
  /** Begins or deepens the watch of what is at this path now; may be repeated. Throws a system error. */
  watch(directory: string, depth: WatchDepth): void;
  /** Ends the watches of all other directories. */
  retain(directories: ReadonlySet<string>): void;
  close(): void;
}

type Listener = (event: DirectoryEvent) => void;

/** The exact watcher if the machine has it, else the approximate one. */
export async function openDirectoryWatcher(
  options: { clock: Clock; backend?: "auto" | "fs.watch" },
  listener: Listener,
): Promise<DirectoryWatcher> {
  const inotify = options.backend === "fs.watch" ? undefined : await Inotify.open();
  if (inotify === undefined) return new FsWatchDirectories(options.clock, listener);
  return new InotifyDirectories(inotify, listener);
}

const NAMES = MASK.create | MASK.delete | MASK.movedFrom | MASK.movedTo | MASK.deleteSelf | MASK.moveSelf;
const DEPTHS: Readonly<Record<WatchDepth, number>> = {
  names: NAMES,
  content: NAMES | MASK.modify | MASK.closeWrite | MASK.attrib,
};

interface Watched {
  readonly descriptor: number;
  readonly depth: WatchDepth;
}

class InotifyDirectories implements DirectoryWatcher {
  private readonly watched = new Map<string, Watched>();

  constructor(
    private readonly inotify: Inotify,
    private readonly listener: Listener,
  ) {
    inotify.listen((event) => this.translate(event));
  }

  watch(directory: string, depth: WatchDepth): void {
    const before = this.watched.get(directory);
    const deep = depth === "content" || before?.depth === "content" ? "content" : "names";
    // Asked again even if known: the path may lead to another directory than before.
    const descriptor = this.inotify.add(directory, DEPTHS[deep]);
    this.watched.set(directory, { descriptor, depth: deep });
    if (before !== undefined && before.descriptor !== descriptor) this.removeUnused(before.descriptor);
  }

  retain(directories: ReadonlySet<string>): void {
    for (const [directory, { descriptor }] of this.watched) {
      if (directories.has(directory)) continue;
      this.watched.delete(directory);
      this.removeUnused(descriptor);
    }
  }

  close(): void {
    this.watched.clear();
    this.inotify.close();
  }

  /** Two paths may lead to one directory, which then has one descriptor. */
  private removeUnused(descriptor: number): void {
    for (const entry of this.watched.values()) if (entry.descriptor === descriptor) return;
    this.inotify.remove(descriptor);
  }

  private translate({ descriptor, mask, name }: InotifyEvent): void {
    if ((mask & MASK.overflow) !== 0) return this.listener({ what: "overflow" });
    const isGone = (mask & (MASK.deleteSelf | MASK.moveSelf | MASK.unmount | MASK.ignored)) !== 0;
    for (const [directory, entry] of [...this.watched]) {
      if (entry.descriptor !== descriptor) continue;
      if (isGone) {
        // After `ignored` the kernel may give the number to another directory.
        if ((mask & MASK.ignored) !== 0) this.watched.delete(directory);
        this.listener({ what: "gone", directory });
      } else if (name !== "") {
        this.listener({ what: nameEvent(mask), directory, name });
      }
    }
  }
}

function nameEvent(mask: number): "created" | "deleted" | "movedTo" | "movedFrom" | "written" {
  if ((mask & MASK.create) !== 0) return "created";
  if ((mask & MASK.delete) !== 0) return "deleted";
  if ((mask & MASK.movedTo) !== 0) return "movedTo";
  if ((mask & MASK.movedFrom) !== 0) return "movedFrom";
  return "written";
}

/** Events of one name are counted for this long, in milliseconds, before they are classified. */
const COUNT_MS = 5;

/**
 * The fallback over fs.watch, which reports `rename` for every kind of change of a name. A name that was there before
 * and is there after an even number of them was removed and made again; after an odd number it was replaced.
 */
class FsWatchDirectories implements DirectoryWatcher {
  private readonly watched = new Map<string, { watcher: FSWatcher; depth: WatchDepth; names: Set<string> }>();
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly listener: Listener,
  ) {}

  watch(directory: string, depth: WatchDepth): void {
    const before = this.watched.get(directory);
    const deep = depth === "content" || before?.depth === "content" ? "content" : "names";
    const watcher = fsWatch(directory, (type, name) => this.heard(directory, type, name));
    watcher.on("error", () => this.listener({ what: "gone", directory }));
    before?.watcher.close();
    this.watched.set(directory, { watcher, depth: deep, names: new Set(readdirSync(directory)) });
  }

  retain(directories: ReadonlySet<string>): void {
    for (const [directory, { watcher }] of this.watched) {
      if (directories.has(directory)) continue;
      watcher.close();
      this.watched.delete(directory);
    }
  }

  close(): void {
    this.retain(new Set());
  }

  private heard(directory: string, type: string, name: string | null): void {
    const entry = this.watched.get(directory);
    if (entry === undefined) return;
    if (name === null) return this.listener({ what: "overflow" });
    if (type === "change") {
      if (entry.depth === "content") this.listener({ what: "written", directory, name });
      return;
    }
    // Node names a removed or moved directory by its own name, as if it were in itself.
    if (name === basename(directory) && !entry.names.has(name)) this.listener({ what: "gone", directory });
    const key = `${directory}\0${name}`;
    const count = this.counts.get(key) ?? 0;
    this.counts.set(key, count + 1);
    if (count === 0) this.clock.after(COUNT_MS, () => this.judge(directory, name));
  }

  private judge(directory: string, name: string): void {
    const key = `${directory}\0${name}`;
    const count = this.counts.get(key) ?? 0;
    this.counts.delete(key);
    const entry = this.watched.get(directory);
    if (entry === undefined) return;
    const before = entry.names.has(name);
    const after = lstatSync(join(directory, name), { throwIfNoEntry: false }) !== undefined;
    if (after) entry.names.add(name);
    else entry.names.delete(name);
    if (before && after && count % 2 === 1) return this.listener({ what: "movedTo", directory, name });
    if (before) this.listener({ what: "deleted", directory, name });
    if (after) this.listener({ what: "created", directory, name });
  }
}
