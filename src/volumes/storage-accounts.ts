import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { podLogDirectoryName } from "../model/names.ts";
import { allContainers, podIdentity } from "../model/pod-facts.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import { meteredEmptyDirs } from "./local-storage.ts";
import { type MeteredDirectory, type Usage, type UsageHost, UsageMeter } from "./usage-meter.ts";

/** The writable layer of a container, as the runtime counts it. */
export interface LayerUsage extends Usage {
  readonly uid: string;
  readonly container: string;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export interface StorageDeps {
  readonly host: UsageHost;
  readonly clock: Clock;
  readonly log: Logger;
  /** Layers of one pod, or of all. */
  layers(uid: string | undefined, options: Abortable): Promise<readonly LayerUsage[]>;
}

export interface StorageOptions {
  readonly rootDir: string;
  readonly podLogsDir: string;
}

export interface ReadOptions extends Abortable {
  /** Measurements up to this age are reused. Defaults to 0. */
  readonly maxAgeMs?: number;
  /** Deadline of the read, however large the trees are; the next read continues from there. */
  readonly limitMs?: number;
}

/** A slice of walking, and the pause after it: a quarter of one core at most. */
const SLICE_MS = 20;
const PAUSE_MS = 60;
const LIMIT_MS = 10_000;
/** After this long without a read, walks are closed and measurements evicted. */
const KEEP_MS = 60_000;

type MeteredPart = StoragePart & { readonly directory?: MeteredDirectory };

/**
 * What pods keep on their node: emptyDirs, logs and writable layers. Nothing is measured unless somebody asks, and then
 * in slices of milliseconds. Several may ask at once; what one of them has measured counts for the others.
 */
export class StorageAccounts {
  private readonly meter: UsageMeter;
  private turn: Promise<unknown> = Promise.resolve();
  private cleanUp: Timer | undefined;

  constructor(
    private readonly deps: StorageDeps,
    private readonly options: StorageOptions,
    signal: AbortSignal,
  ) {
    this.meter = new UsageMeter(deps);
    signal.addEventListener("abort", () => this.cleanUp?.cancel(), { once: true });
  }

  /** By UID, for each of these pods. Never rejects but for an abort: what cannot be measured is missing. */
  async read(pods: readonly Pod[], options: ReadOptions): Promise<ReadonlyMap<string, PodStorage>> {
    const { clock } = this.deps;
    const { signal, maxAgeMs = 0, limitMs = LIMIT_MS } = options;
    const since = clock.now().mono - maxAgeMs;
    const [only, ...others] = pods;
    if (only === undefined) return new Map();
    const parts = new Map(pods.map((pod) => [podIdentity(pod).uid, this.meteredParts(pod)]));
    const directories = [...parts.values()].flat().flatMap(({ directory }) => directory ?? []);
    const [layers] = await Promise.all([
      this.layers(others.length === 0 ? podIdentity(only).uid : undefined, { signal, limitMs }),
      this.measure(directories, { signal, since, until: clock.now().mono + limitMs }),
    ]);
    return new Map([...parts].map(([uid, all]) => [uid, this.sum(all, layers?.get(uid) ?? [], layers && since)]));
  }

  private async measure(
    directories: readonly MeteredDirectory[],
    { signal, since, until }: Abortable & { since: number; until: number },
  ): Promise<void> {
    const { clock } = this.deps;
    this.cleanUp?.cancel();
    try {
      for (;;) {
        const budgetMs = Math.min(SLICE_MS, until - clock.now().mono);
        if (await this.serially(() => this.meter.advance(directories, { signal, since, budgetMs }))) return;
        if (clock.now().mono >= until) return;
        await clock.sleep(PAUSE_MS, { signal });
      }
    } finally {
      this.cleanUp?.cancel();
      // Whoever reads again cancels it: it runs once after the last reader, and then nothing does.
      this.cleanUp = clock.after(KEEP_MS, () => void this.serially(() => this.meter.forget(clock.now().mono)));
    }
  }

  private meteredParts(pod: Pod): readonly MeteredPart[] {
    const logs = `${this.options.podLogsDir}/${podLogDirectoryName(podIdentity(pod))}`;
    return [
      ...meteredEmptyDirs(pod, this.options.rootDir).map(
        ({ volume, isFilesystem = false, sizeLimit, ...directory }): MeteredPart => ({
          kind: "emptyDir",
          name: volume,
          isMemory: isFilesystem,
          directory: { ...directory, isFilesystem },
          ...(sizeLimit !== undefined && { sizeLimit }),
        }),
      ),
      ...allContainers(pod).map(
        ({ name }): MeteredPart => ({ kind: "log", name, isMemory: false, directory: { path: `${logs}/${name}` } }),
      ),
    ];
  }

  /** By pod; undefined when the runtime cannot tell. */
  private async layers(
    uid: string | undefined,
    { signal, limitMs }: Abortable & { limitMs: number },
  ): Promise<ReadonlyMap<string, readonly LayerUsage[]> | undefined> {
    const limit = { clock: this.deps.clock, ms: limitMs };
    try {
      const found = new Map<string, LayerUsage[]>();
      const layers = await withScope([signal], limit, (inner) => this.deps.layers(uid, { signal: inner }));
      for (const layer of layers) {
        found.set(layer.uid, [...(found.get(layer.uid) ?? []), layer]);
      }
      return found;
    } catch (error) {
      signal.throwIfAborted();
      this.deps.log.warn("Failed to list writable layers", { error: messageOf(error) });
      return undefined;
    }
  }

  /** `since` is missing when the layers are not known: then the sum is not what it should be, however new it is. */
  private sum(metered: readonly MeteredPart[], layers: readonly LayerUsage[], since: number | undefined): PodStorage {
    const parts = [
      ...metered.map(({ directory, ...part }): StoragePart => {
        const usage = directory && this.meter.usage(directory.path);
        return usage === undefined ? part : { ...part, usage };
      }),
      ...layers.map(
        ({ container, bytes, inodes, at }): StoragePart => ({
          kind: "layer",
          name: container,
          isMemory: false,
          usage: { bytes, inodes, at, by: "runtime" },
        }),
      ),
    ];
    const onDisk = parts.filter(({ isMemory }) => !isMemory);
    const total = (of: "bytes" | "inodes"): number => onDisk.reduce((sum, { usage }) => sum + (usage?.[of] ?? 0), 0);
    const isDone = ({ directory }: MeteredPart): boolean =>
      directory === undefined || (since !== undefined && this.meter.isDone(directory.path, since));
    const isFresh = since !== undefined && metered.every(isDone);
    return { parts, bytes: total("bytes"), inodes: total("inodes"), isFresh };
  }

  private serially<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }
}
