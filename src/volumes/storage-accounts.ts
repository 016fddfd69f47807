import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod, Volume } from "../model/generated/types.ts";
import { podLogDirectoryName } from "../model/names.ts";
import { allContainers, podIdentity } from "../model/pod-facts.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import { meteredEmptyDirs } from "./local-storage.ts";
import type { VolumePlace } from "./pod-volume.ts";
import { type MeteredDirectory, type Usage, type UsageHost, UsageMeter } from "./usage-meter.ts";

/** The writable layer of a container, as the runtime counts it. */
export interface LayerUsage extends Usage {
  readonly uid: string;
  readonly container: string;
  /** An instance that has terminated: its layer is on disk until it is removed. */
  readonly isTerminated: boolean;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export interface StorageDeps {
  readonly host: UsageHost;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where a volume is that is set up; undefined if it is not, or has no path. */
  pathOf?(pod: Pod, volume: string): VolumePlace | undefined;
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

/** Runtimes measure layers this often themselves: asking again sooner gives the same answer. */
const LAYERS_AGE_MS = 10_000;

type LayersByPod = ReadonlyMap<string, readonly LayerUsage[]>;

type MeteredPart = StoragePart & { readonly directory?: MeteredDirectory };

/**
 * What pods keep on their node: emptyDirs, logs and writable layers. Nothing is measured unless somebody asks, and then
 * in slices of milliseconds. Several may ask at once; what one of them has measured counts for the others.
 */
export class StorageAccounts {
  private readonly meter: UsageMeter;
  private turn: Promise<unknown> = Promise.resolve();
  private cleanUp: Timer | undefined;
  /** The newest list of the layers of all pods. */
  private listed: { readonly at: number; readonly layers: LayersByPod } | undefined;

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
    if (pods.length === 0) return new Map();
    const parts = new Map(pods.map((pod) => [podIdentity(pod).uid, this.meteredParts(pod)]));
    const directories = [...parts.values()].flat().flatMap(({ directory }) => directory ?? []);
    const [layers] = await Promise.all([
      this.layers([...parts.keys()], { signal, limitMs, maxAgeMs }),
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
      this.cleanUp = clock.after(KEEP_MS, () => {
        this.listed = undefined;
        void this.serially(() => this.meter.forget(clock.now().mono));
      });
    }
  }

  private meteredParts(pod: Pod): readonly MeteredPart[] {
    const logs = `${this.options.podLogsDir}/${podLogDirectoryName(podIdentity(pod))}`;
    const own = `${this.options.rootDir}/pods/${podIdentity(pod).uid}`;
    // Containers can write as much as they like into them, and no volume and no layer counts it.
    const file = (name: string, path: string): MeteredPart => ({
      kind: "file",
      name,
      isMemory: false,
      directory: { path: `${own}/${path}` },
    });
    return [
      ...meteredEmptyDirs(pod, this.options.rootDir).map(
        ({ volume, isFilesystem = false, sizeLimit, ...directory }): MeteredPart => ({
          kind: "emptyDir",
          name: volume,
          isMemory: isFilesystem,
          directory: { ...directory, isFilesystem },
          ...(isFilesystem && { path: directory.path }),
          ...(sizeLimit !== undefined && { sizeLimit }),
        }),
      ),
      ...this.volumes(pod),
      ...allContainers(pod).map(
        ({ name }): MeteredPart => ({ kind: "log", name, isMemory: false, directory: { path: `${logs}/${name}` } }),
      ),
      file("etc-hosts", "etc-hosts"),
      file("termination-log", "containers"),
    ];
  }

  /** What the agent mounted or wrote for a pod beside its emptyDirs: claims by their filesystem, the others by their files. */
  private volumes(pod: Pod): readonly MeteredPart[] {
    const below = `${this.options.rootDir}/pods/`;
    return (pod.spec.volumes ?? []).flatMap((volume): MeteredPart[] => {
      if (volume.emptyDir !== undefined) return [];
      const { path = "", isRemote = false, hasDriver = false } = this.deps.pathOf?.(pod, volume.name) ?? {};
      if (!hasDriver && !path.startsWith(below)) return [];
      const counted = { ...(isRemote && { isRemote }), ...(hasDriver && { hasDriver }) };
      const part = { kind: "volume", name: volume.name, isMemory: true, path, ...counted } as const;
      const claim = claimOf(pod, volume);
      if (claim !== undefined) return [{ ...part, claim }];
      // What is behind a server is as full as its filesystem: nobody walks through it.
      return [isRemote || hasDriver ? part : { ...part, directory: { path } }];
    });
  }

  /** By pod; undefined when the runtime cannot tell. */
  private async layers(
    uids: readonly string[],
    { signal, limitMs, maxAgeMs }: Abortable & { limitMs: number; maxAgeMs: number },
  ): Promise<LayersByPod | undefined> {
    const { clock } = this.deps;
    const at = clock.now().mono;
    const { listed } = this;
    const isYoung = listed !== undefined && at - listed.at < Math.min(maxAgeMs, LAYERS_AGE_MS);
    if (isYoung && uids.every((uid) => listed.layers.has(uid))) return listed.layers;
    const only = uids.length === 1 ? uids[0] : undefined;
    try {
      const limit = { clock, ms: limitMs };
      const found = new Map<string, LayerUsage[]>(uids.map((uid) => [uid, []]));
      const layers = await withScope([signal], limit, (inner) => this.deps.layers(only, { signal: inner }));
      for (const layer of layers) {
        const own = found.get(layer.uid);
        if (own === undefined) found.set(layer.uid, [layer]);
        else own.push(layer);
      }
      if (only === undefined) this.listed = { at, layers: found };
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
      ...layerParts(layers),
    ];
    const onDisk = parts.filter(({ isMemory, isOld }) => !isMemory && isOld !== true);
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

/** Those of running instances first: terminated ones do not count against the limits of the pod, as in Kubernetes. */
function layerParts(layers: readonly LayerUsage[]): readonly StoragePart[] {
  const part = ({ container, isTerminated, bytes, inodes, at }: LayerUsage): StoragePart => ({
    kind: "layer",
    name: container,
    isMemory: false,
    ...(isTerminated && { isOld: true }),
    usage: { bytes, inodes, at, by: "runtime" },
  });
  const inOrder = [...layers].sort((a, b) => Number(a.isTerminated) - Number(b.isTerminated));
  return inOrder.map(part);
}

/** The claim of a volume; one that is made for the pod carries both names. */
function claimOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.ephemeral !== undefined) return `${podIdentity(pod).name}-${volume.name}`;
  return volume.persistentVolumeClaim?.claimName;
}
