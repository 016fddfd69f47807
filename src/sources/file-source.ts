import { basename, join } from "node:path";
import { type Abortable, AbortScope, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live } from "../lib/live.ts";
import { podKey, sourceObjectKey } from "./decode.ts";
import { loadManifest, type ManifestFiles, type ManifestState } from "./manifest-file.ts";
import { PendingChanges, type WatchChange } from "./pending-changes.ts";
import { Reports } from "./reports.ts";
import type { DocumentParser, Snapshot, SourceObject, SourcePod, SourceProblem } from "./snapshot.ts";

/** A file that takes longer, in milliseconds, is read in the background and keeps its last content meanwhile. */
const SLOW_MS = 250;

export interface FileSourceDeps {
  readonly files: ManifestFiles;
  readonly clock: Clock;
  readonly parse: DocumentParser;
  /** Resolves when the watch is established; it delivers changes until the signal aborts. See lib/file-watch.ts. */
  watch(path: string, options: Abortable & { onChange: (change: WatchChange) => void }): Promise<void>;
  publish(snapshot: Snapshot): void;
  report(problem: SourceProblem): void;
}

export interface FileSourceOptions {
  /** A manifest file or a directory of them; empty for none. */
  readonly path: string;
  readonly nodeName: string;
  /** With an API server manifests contain only pods; see `DecodeOptions`. */
  readonly hasApiServer?: boolean;
  /** Interval of rescans, in addition to the watch. */
  readonly checkFrequencyMs: number;
}

/**
 * Static pods of a file or directory, and the ConfigMaps and Secrets beside them. Publishes whole snapshots: one after
 * the first read (empty if nothing exists), then one per change. A removed file is one snapshot without its pods, even if
 * the file is back at once.
 */
export class FileSource {
  private readonly pending = new PendingChanges();
  private readonly reports: Reports;
  private files = new Map<string, ManifestState>();
  /** Files that are being read; a newer change of a file cancels the read of an older one. */
  private readonly slow = new Map<string, AbortScope>();
  private isDirectory = false;
  private published: Snapshot | undefined;
  private isBusy = false;
  /** A bug that surfaced in a background read; it ends the source. */
  private defect: unknown;

  constructor(
    private readonly deps: FileSourceDeps,
    private readonly options: Live<FileSourceOptions>,
  ) {
    this.reports = new Reports((problem) => deps.report(problem));
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.options.onChange(() => this.pending.add({ kind: "rescan", name: "" }), { signal });
    while (!signal.aborted) {
      const scope = new AbortScope([signal]);
      try {
        await this.follow(this.options.current.path, scope.signal);
      } catch (error) {
        if (!isAborted(error, signal)) throw error;
      } finally {
        scope.abort();
        scope.dispose();
      }
    }
  }

  /** Watches and reads one path until another one is configured. */
  private async follow(path: string, signal: AbortSignal): Promise<void> {
    this.files = new Map();
    for (const name of [...this.slow.keys()]) this.endSlow(name);
    this.pending.take();
    if (path !== "") await this.startWatch(path, signal);
    this.pending.add({ kind: "rescan", name: "" });
    while (this.options.current.path === path) {
      if (this.defect !== undefined) throw this.defect;
      this.isBusy = true;
      await this.handleChanges(path, signal);
      this.isBusy = false;
      await this.pending.wait(this.deps.clock, this.options.current.checkFrequencyMs, signal);
    }
  }

  private async startWatch(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.deps.watch(path, { signal, onChange: (change) => this.pending.add(change) });
    } catch (error) {
      if (signal.aborted) throw error;
      this.deps.report({ file: path, message: `cannot be watched, only looked at now and then: ${messageOf(error)}` });
    }
  }

  private async handleChanges(path: string, signal: AbortSignal): Promise<void> {
    const { removed, touched, rescan } = this.pending.take();
    // First without the removed ones: the pods of a file that is back already are stopped and started again.
    if (removed.size > 0) {
      for (const name of removed) this.drop(path, name);
      this.publishIfChanged();
    }
    let isComplete = true;
    if (rescan || !this.isDirectory) isComplete = await this.scan(path, touched, signal);
    else for (const name of [...touched].sort()) await this.load(path, { name, force: true }, signal);
    if (isComplete) this.publishIfChanged();
  }

  /** Reads everything. False if the path could not be read: the previous content stays then. */
  private async scan(path: string, touched: ReadonlySet<string>, signal: AbortSignal): Promise<boolean> {
    const names = path === "" ? [] : await this.findNames(path, signal);
    if (names === undefined) return false;
    for (const name of this.files.keys()) if (!names.includes(name)) this.drop(path, name);
    for (const name of names) await this.load(path, { name, force: touched.has(name) }, signal);
    return true;
  }

  private async findNames(path: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
    try {
      const facts = await this.deps.files.stat(path, { signal });
      if (facts?.kind === "other") throw new Error("is neither a file nor a directory");
      this.isDirectory = facts?.kind === "directory";
      let names: readonly string[] = [];
      if (facts?.kind === "file") names = [basename(path)];
      else if (facts !== undefined) names = (await this.deps.files.list(path, { signal })).filter(isVisible);
      if (facts?.kind !== "file") this.reports.forget(path);
      return [...names].sort();
    } catch (error) {
      if (signal.aborted) throw error;
      this.reports.set(path, [{ message: `cannot be read: ${messageOf(error)}` }]);
      return undefined;
    }
  }

  private async load(
    path: string,
    { name, force }: { name: string; force: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    if (this.isDirectory && !isVisible(name)) return;
    // A file that is being read is read again only if it has changed.
    if (this.slow.has(name) && !force) return;
    this.endSlow(name);
    const scope = new AbortScope([signal]);
    const loading = this.read(path, { name, force }, scope.signal);
    if (await this.isQuick(loading)) return scope.dispose();
    this.slow.set(name, scope);
    loading.then(
      () => this.slowDone(name, scope),
      (error: unknown) => {
        if (isAborted(error, scope.signal)) return;
        this.defect = error;
        this.pending.add({ kind: "rescan", name: "" });
      },
    );
  }

  private async read(
    path: string,
    { name, force }: { name: string; force: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { nodeName, hasApiServer = false } = this.options.current;
    const before = this.files.get(name);
    const request = { path: this.pathOf(path, name), nodeName, hasApiServer, before, force, signal };
    const state = await loadManifest(this.deps, request);
    signal.throwIfAborted();
    if (state === undefined) this.drop(path, name);
    else this.files.set(name, state);
  }

  private async isQuick(loading: Promise<void>): Promise<boolean> {
    const limit = new AbortScope([]);
    try {
      const slow = this.deps.clock.sleep(SLOW_MS, limit).then(
        () => false,
        () => true,
      );
      return await Promise.race([loading.then(() => true), slow]);
    } finally {
      limit.abort();
      limit.dispose();
    }
  }

  private slowDone(name: string, scope: AbortScope): void {
    if (this.slow.get(name) === scope) this.slow.delete(name);
    scope.dispose();
    if (!this.isBusy) this.publishIfChanged();
  }

  private endSlow(name: string): void {
    const scope = this.slow.get(name);
    this.slow.delete(name);
    scope?.abort();
    scope?.dispose();
  }

  private drop(path: string, name: string): void {
    this.endSlow(name);
    this.files.delete(name);
    this.reports.forget(this.pathOf(path, name));
  }

  private pathOf(path: string, name: string): string {
    return this.isDirectory ? join(path, name) : path;
  }

  /** Publishes a snapshot and reports the problems of the files. */
  private publishIfChanged(): void {
    const { pods, objects } = this.gather();
    const isIncomplete = this.slow.size > 0 || [...this.files.values()].some(({ problems }) => problems.length > 0);
    const before = this.published;
    const isSame = before !== undefined && areSame(before.pods, pods) && areSame(before.objects, objects);
    if (isSame && before.isIncomplete === isIncomplete) return;
    this.published = { source: "file", pods, objects, isIncomplete };
    this.deps.publish(this.published);
  }

  /** All pods and objects in the order of their files; the first of two with one name wins. */
  private gather(): { pods: readonly SourcePod[]; objects: readonly SourceObject[] } {
    const { path } = this.options.current;
    const owners = new Map<string, string>();
    const pods: SourcePod[] = [];
    const objects: SourceObject[] = [];
    for (const name of [...this.files.keys()].sort()) {
      const state = this.files.get(name);
      const clashes: { message: string }[] = [];
      const isFirst = (key: string): boolean => {
        const owner = owners.get(key);
        if (owner === undefined) owners.set(key, name);
        else {
          const message = `${key} is in ${owner} already and is ignored here; rename or remove one of them`;
          clashes.push({ message });
        }
        return owner === undefined;
      };
      pods.push(...(state?.pods ?? []).filter(({ pod }) => isFirst(`pod ${podKey(pod)}`)));
      objects.push(...(state?.objects ?? []).filter((object) => isFirst(sourceObjectKey(object))));
      this.reports.set(this.pathOf(path, name), [...(state?.problems ?? []), ...clashes]);
    }
    return { pods, objects };
  }
}

function areSame<T>(before: readonly T[], after: readonly T[]): boolean {
  return before.length === after.length && after.every((entry, at) => entry === before[at]);
}

function isVisible(name: string): boolean {
  return !name.startsWith(".");
}
