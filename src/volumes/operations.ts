import type { Abortable } from "../lib/abort.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/log.ts";
import type { Volume } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import {
  directoryName,
  type PersistentSource,
  type ReadyVolume,
  type SetUpDeps,
  type VolumeDeps,
  type VolumeKind,
  type VolumeOfPod,
} from "./kind.ts";
import { readMetadata } from "./metadata.ts";
import type { OperationMeter } from "./metrics.ts";
import type { VolumePaths } from "./paths.ts";
import { type StagedKind, StagedVolumes } from "./staged-volumes.ts";

export interface OperationDeps extends VolumeDeps {
  readonly log: Logger;
  readonly meter: OperationMeter;
}

export interface OperationOptions {
  readonly kinds: readonly VolumeKind[];
  readonly paths: VolumePaths;
}

/**
 * Calls the kinds of volumes, one call at a time for a volume. It tears down by what is on disk and knows nothing else of
 * a pod.
 */
export class VolumeOperations {
  private readonly mutex = new KeyedMutex();
  private readonly staged: StagedVolumes;
  private readonly setUpDeps: SetUpDeps;

  constructor(
    private readonly deps: OperationDeps,
    private readonly options: OperationOptions,
  ) {
    const { kinds, paths } = options;
    this.setUpDeps = { ...deps, setUpPersistent: (of, call) => this.setUpPersistent(of, call) };
    this.staged = new StagedVolumes({ ...deps, mutex: this.mutex }, { kinds: kinds.filter(isStaged), paths });
  }

  /** The kind of a volume of a pod's spec, if there is one. */
  kindOf(volume: Volume): VolumeKind | undefined {
    return this.options.kinds.find((kind) => kind.handles?.(volume) === true);
  }

  /** Makes a volume ready for its pod; stages it first where its kind does that. Safe to repeat. */
  async setUp(kind: VolumeKind, of: VolumeOfPod, options: Abortable): Promise<ReadyVolume> {
    // A claim is only resolved here: the operation is that of the kind behind it.
    if (kind.plugin === "") return kind.setUp(of, this.setUpDeps, options);
    const ready = await this.deps.meter.measure({ plugin: kind.plugin, operation: "volume_mount" }, () => {
      if (isStaged(kind)) return this.staged.setUp(kind, of, { ...options, deps: this.setUpDeps });
      return this.mutex.run(of.directory, () => kind.setUp(of, this.setUpDeps, options), options);
    });
    return { ...ready, plugin: kind.plugin };
  }

  /** True if a staged volume of the pod has to be set up again from time to time, or if that cannot be found out. */
  async isRefreshed(uid: string, options: Abortable): Promise<boolean> {
    for (const kind of this.options.kinds.filter(isStaged)) {
      const base = `${this.options.paths.volumes(uid)}/${directoryName(kind)}`;
      for (const name of kind.staging.isRefreshed === undefined ? [] : await this.deps.host.list(base)) {
        try {
          const metadata = await readMetadata(`${base}/${name}`, this.deps.host);
          if (metadata !== undefined && (await kind.staging.isRefreshed?.(metadata, this.deps, options))) return true;
        } catch {
          // To set up again does no harm, and is tried until it can be done.
          return true;
        }
      }
    }
    return false;
  }

  /** Tears down every volume in a pod's directory, by what is there. Safe to repeat. */
  async tearDownPod(uid: string, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const base = this.options.paths.volumes(uid);
    const present = new Set(await host.list(base));
    for (const kind of this.options.kinds) {
      if (kind.tearDown === undefined || !present.has(directoryName(kind))) continue;
      for (const name of await host.list(`${base}/${directoryName(kind)}`)) {
        options.signal.throwIfAborted();
        await this.tearDown(kind, `${base}/${directoryName(kind)}/${name}`, options);
      }
    }
  }

  /** Unstages what no pod uses any more, as after a crash. Returns the stages that could not be unstaged. */
  removeUnusedStages(options: Abortable): Promise<readonly string[]> {
    return this.staged.removeUnused(options);
  }

  private async setUpPersistent(
    of: VolumeOfPod & { readonly persistent: PersistentSource },
    options: Abortable,
  ): Promise<ReadyVolume> {
    const { metadata, spec } = of.persistent.object;
    const kind = this.options.kinds.find((candidate) => candidate.handlesPersistent?.(spec) === true);
    if (kind === undefined) throw new Error(`volume "${metadata.name}" has a source that is not supported yet`);
    const directory = this.options.paths.volume(podIdentity(of.pod).uid, kind, metadata.name ?? "");
    return this.setUp(kind, { ...of, directory }, options);
  }

  private async tearDown(kind: VolumeKind, directory: string, options: Abortable): Promise<void> {
    if (isStaged(kind)) return this.staged.tearDown(kind, directory, options);
    const operation = { plugin: kind.plugin, operation: "volume_unmount" } as const;
    const work = async (): Promise<void> => kind.tearDown?.({ directory, metadata: {} }, this.deps, options);
    await this.mutex.run(directory, () => this.deps.meter.measure(operation, work), options);
  }
}

function isStaged(kind: VolumeKind): kind is StagedKind {
  return kind.staging !== undefined;
}
