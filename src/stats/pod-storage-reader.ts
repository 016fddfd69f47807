import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import type { FilesystemSpace, VolumeSpace } from "../model/usage.ts";

export interface PodStorageDeps {
  readonly clock: Clock;
  /** Measures what pods keep on disk. */
  readonly storage: {
    read(
      pods: readonly Pod[],
      options: Abortable & { maxAgeMs?: number; limitMs?: number },
    ): Promise<ReadonlyMap<string, PodStorage>>;
  };
  /** Space of the filesystem at a path; undefined if it cannot be read in time. */
  space(path: string, signal: AbortSignal): Promise<FilesystemSpace | undefined>;
  /** The same for one of a server or of a disk that may be gone: the last answer, if it does not answer in time. */
  remoteSpace(path: string, signal: AbortSignal): Promise<FilesystemSpace | undefined>;
  /** The same for one that its driver counts: the last answer. */
  driverSpace(path: string, options: Abortable & { maxAgeMs: number }): Promise<VolumeSpace | undefined>;
  /** The pods whose storage is measured. */
  pods(): readonly Pod[];
  /** How old a measurement may be, in milliseconds; a negative period turns measuring of volumes off. */
  maxAgeMs(): number;
}

/** Time limit of measuring; what is not measured by then is missing or older. */
const LIMIT_MS = 1000;
/** What is complete is not asked for again sooner, in milliseconds: neither do runtimes measure layers more often. */
const REUSED_MS = 10_000;

/** How old measurements of logs and writable layers may be without a period: the default of volumes. */
const DEFAULT_AGE_MS = 60_000;

/** The storage of all pods and the filesystems of their volumes, measured only while somebody asks. */
export class PodStorageReader {
  latest: ReadonlyMap<string, PodStorage> = new Map();
  private spaces = new Map<string, { readonly at: number; readonly space: VolumeSpace | undefined }>();
  private running: Promise<unknown> | undefined;
  private readAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: PodStorageDeps) {}

  /** Measures what is too old, for a second at most. The same object as before if nothing was. */
  async read({ signal }: Abortable): Promise<ReadonlyMap<string, PodStorage>> {
    const periodMs = this.deps.maxAgeMs();
    const maxAgeMs = periodMs < 0 ? DEFAULT_AGE_MS : periodMs;
    const now = this.deps.clock.now().mono;
    // Without volumes the rest of the ephemeral storage is measured all the same, as in Kubernetes.
    const pods = periodMs < 0 ? this.deps.pods().map(withoutVolumes) : this.deps.pods();
    if (now - this.readAt < Math.min(maxAgeMs, REUSED_MS) && this.isComplete(pods)) return this.latest;
    this.latest = await this.deps.storage.read(pods, { signal, maxAgeMs, limitMs: LIMIT_MS });
    this.readAt = now;
    await this.readSpaces(maxAgeMs, signal);
    return this.latest;
  }

  /** True if all of these pods are measured, and no other. */
  private isComplete(pods: readonly Pod[]): boolean {
    return pods.length === this.latest.size && pods.every((pod) => this.latest.get(podIdentity(pod).uid)?.isFresh);
  }

  /** What was measured last. Begins to measure again, for the next one who asks; never waits. */
  readLater(signal: AbortSignal): ReadonlyMap<string, PodStorage> {
    this.running ??= this.readAlone(signal);
    return this.latest;
  }

  spaceAt(path: string): VolumeSpace | undefined {
    return this.spaces.get(path)?.space;
  }

  private async readAlone(signal: AbortSignal): Promise<void> {
    try {
      await this.read({ signal });
    } catch {
      // What was measured before stays.
    } finally {
      this.running = undefined;
    }
  }

  private async readSpaces(maxAgeMs: number, signal: AbortSignal): Promise<void> {
    const now = this.deps.clock.now().mono;
    const parts = [...this.latest.values()].flatMap((storage) => storage.parts);
    const known = this.spaces;
    const read = async ({ path = "", isRemote = false, hasDriver = false }: StoragePart) => {
      if (hasDriver)
        return [path, { at: now, space: await this.deps.driverSpace(path, { signal, maxAgeMs }) }] as const;
      const last = known.get(path);
      const isKnown = last?.space !== undefined || !isRemote;
      if (last !== undefined && isKnown && now - last.at < maxAgeMs) return [path, last] as const;
      const space = await (isRemote ? this.deps.remoteSpace(path, signal) : this.deps.space(path, signal));
      return [path, { at: now, space }] as const;
    };
    this.spaces = new Map(await Promise.all(parts.filter(({ path }) => path !== undefined).map(read)));
  }
}

function withoutVolumes(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, volumes: [] } };
}
