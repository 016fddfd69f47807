import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { FilesystemSpace } from "../model/usage.ts";

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
  /** The pods whose storage is measured. */
  pods(): readonly Pod[];
  /** How old a measurement may be, in milliseconds; a negative period turns measuring off. */
  maxAgeMs(): number;
}

/** Time limit of measuring; what is not measured by then is missing or older. */
const LIMIT_MS = 1000;

/** The storage of all pods and the filesystems of their volumes, measured only while somebody asks. */
export class PodStorageReader {
  latest: ReadonlyMap<string, PodStorage> = new Map();
  private spaces = new Map<string, { readonly at: number; readonly space: FilesystemSpace | undefined }>();
  private running: Promise<unknown> | undefined;

  constructor(private readonly deps: PodStorageDeps) {}

  /** Measures what is too old, for a second at most. */
  async read({ signal }: Abortable): Promise<ReadonlyMap<string, PodStorage>> {
    const maxAgeMs = this.deps.maxAgeMs();
    if (maxAgeMs < 0) return new Map();
    this.latest = await this.deps.storage.read(this.deps.pods(), { signal, maxAgeMs, limitMs: LIMIT_MS });
    await this.readSpaces(maxAgeMs, signal);
    return this.latest;
  }

  /** What was measured last. Begins to measure again, for the next one who asks; never waits. */
  readLater(signal: AbortSignal): ReadonlyMap<string, PodStorage> {
    this.running ??= this.readAlone(signal);
    return this.latest;
  }

  spaceAt(path: string): FilesystemSpace | undefined {
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
    const paths = [...this.latest.values()].flatMap(({ parts }) => parts.flatMap(({ path }) => path ?? []));
    const known = this.spaces;
    const read = async (path: string) => {
      const last = known.get(path);
      if (last !== undefined && now - last.at < maxAgeMs) return [path, last] as const;
      return [path, { at: now, space: await this.deps.space(path, signal) }] as const;
    };
    this.spaces = new Map(await Promise.all(paths.map(read)));
  }
}
