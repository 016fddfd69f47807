import type { Abortable } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/log.ts";
import {
  podMount,
  type ReadyVolume,
  removeMountTarget,
  type SetUpDeps,
  type Stage,
  type TearDownDeps,
  unmountAll,
  type VolumeKind,
  type VolumeMetadata,
  type VolumeOfPod,
  type VolumeStaging,
} from "./kind.ts";
import { MetadataError, readMetadata, removeMetadata, writeMetadata } from "./metadata.ts";
import type { OperationMeter } from "./metrics.ts";
import type { VolumePaths } from "./paths.ts";
import { StageReferences } from "./stage-references.ts";

/** A kind that is mounted once a node. */
export type StagedKind = VolumeKind & { readonly staging: VolumeStaging };

export interface StagedVolumeDeps extends TearDownDeps {
  readonly log: Logger;
  readonly meter: OperationMeter;
  /** One call at a time for a stage. */
  readonly mutex: KeyedMutex;
}

/** Between two attempts to unstage, in milliseconds. */
const UNSTAGE_BACKOFF = { initialMs: 500, maxMs: 122_000 };

/** Volumes that are mounted once a node and shared by their pods; see `VolumeStaging` for the order of the steps. */
export class StagedVolumes {
  private readonly references = new Map<VolumeKind, StageReferences>();
  private readonly backoff = new Backoff(UNSTAGE_BACKOFF);
  private retryTimer: Timer | undefined;

  constructor(
    private readonly deps: StagedVolumeDeps,
    private readonly options: { readonly kinds: readonly StagedKind[]; readonly paths: VolumePaths },
  ) {}

  /** Stages the volume unless it is, and sets it up for the pod. Safe to repeat. */
  async setUp(
    kind: StagedKind,
    of: VolumeOfPod,
    { deps, ...options }: Abortable & { deps: SetUpDeps },
  ): Promise<ReadyVolume> {
    const { host, mutex } = this.deps;
    const metadata = await kind.staging.metadata(of, deps, options);
    const stage = this.stageOf(kind, metadata);
    const work = async (): Promise<ReadyVolume> => {
      await this.referencesOf(kind).add(of.directory, stage);
      await host.makeDir(stage.directory, 0o750);
      await writeMetadata(stage.directory, metadata, host);
      await kind.staging.stage({ ...of, stage }, deps, options);
      return kind.setUp({ ...of, stage }, deps, options);
    };
    return mutex.run(stage.directory, work, options);
  }

  /** Tears down a pod's volume and unstages it if no other pod uses it. Safe to repeat. */
  async tearDown(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    const { host, meter, mutex } = this.deps;
    const metadata = await this.metadataOf(kind, directory);
    if (metadata === undefined) return this.discard(kind, directory, options);
    const stage = this.stageOf(kind, metadata);
    const references = this.referencesOf(kind);
    const operation = { plugin: kind.plugin, operation: "volume_unmount" } as const;
    const work = async (): Promise<void> => {
      await meter.measure(operation, async () => kind.tearDown?.({ directory, metadata }, this.deps, options));
      if (!(await references.isUsed(stage.directory, directory))) await this.unstageOrRetry(kind, stage, options);
      await references.remove(directory);
      await host.removeDir(directory);
    };
    await mutex.run(stage.directory, work, options);
  }

  /** Unstages what no pod uses any more, as after a crash. Returns the stages that could not be unstaged. */
  async removeUnused(options: Abortable): Promise<readonly string[]> {
    const { host, log, mutex } = this.deps;
    const { plugins } = this.options.paths;
    const left: string[] = [];
    for (const kind of this.options.kinds) {
      for (const name of await kind.staging.list(plugins, host)) {
        const directory = `${plugins}/${name}`;
        try {
          await mutex.run(directory, () => this.removeIfUnused(kind, directory, options), options);
        } catch (error) {
          if (options.signal.aborted) throw error;
          left.push(directory);
          log.warn("Failed to unstage unused volume", { plugin: kind.plugin, directory, error: messageOf(error) });
        }
      }
    }
    return left;
  }

  private async removeIfUnused(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    if (await this.referencesOf(kind).isUsed(directory)) return;
    const metadata = await readMetadata(directory, this.deps.host);
    // Without metadata nothing was mounted yet, or nothing is any more.
    if (metadata === undefined) return this.removeStageDirectory(directory);
    await this.unstage(kind, { directory, metadata }, options);
    this.deps.log.info("Unstaged unused volume", { plugin: kind.plugin, directory });
  }

  /** Undefined if the volume has none: then nothing was staged for it, or all of that is undone. */
  private async metadataOf(kind: StagedKind, directory: string): Promise<VolumeMetadata | undefined> {
    try {
      return await readMetadata(directory, this.deps.host);
    } catch (error) {
      if (!(error instanceof MetadataError)) throw error;
      this.deps.log.warn("Failed to read volume metadata", { plugin: kind.plugin, directory, error: error.message });
      return undefined;
    }
  }

  /** Removes a volume without metadata. Its stage, and those that it may have used, are looked for a little later. */
  private async discard(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    const { host, mutex } = this.deps;
    const work = async (): Promise<void> => {
      await unmountAll(podMount(directory), host);
      await removeMountTarget(podMount(directory), host, options);
      await this.referencesOf(kind).remove(directory);
      await host.removeDir(directory);
    };
    await mutex.run(directory, work, options);
    this.retry();
  }

  /** The pod does not wait for a stage that cannot be undone now: it has no user any more and is tried again. */
  private async unstageOrRetry(kind: StagedKind, stage: Stage, options: Abortable): Promise<void> {
    try {
      await this.unstage(kind, stage, options);
    } catch (error) {
      if (options.signal.aborted) throw error;
      const { directory } = stage;
      this.deps.log.warn("Failed to unstage volume", { plugin: kind.plugin, directory, error: messageOf(error) });
      this.retry();
    }
  }

  private async unstage(kind: StagedKind, stage: Stage, options: Abortable): Promise<void> {
    const operation = { plugin: kind.plugin, operation: "unmount_device" } as const;
    await this.deps.meter.measure(operation, () => kind.staging.unstage(stage, this.deps, options));
    await this.removeStageDirectory(stage.directory);
  }

  private retry(): void {
    const { clock, log } = this.deps;
    if (this.retryTimer !== undefined) return;
    this.retryTimer = clock.after(this.backoff.next(clock.now()), () => {
      this.retryTimer = undefined;
      this.removeUnused({ signal: new AbortController().signal }).then(
        (left) => (left.length === 0 ? this.backoff.reset() : this.retry()),
        (error: unknown) => {
          log.warn("Failed to list unused stages", { error: messageOf(error) });
          this.retry();
        },
      );
    });
  }

  private async removeStageDirectory(directory: string): Promise<void> {
    await removeMetadata(directory, this.deps.host);
    await this.deps.host.removeDir(directory);
  }

  private stageOf(kind: StagedKind, metadata: VolumeMetadata): Stage {
    return { directory: `${this.options.paths.plugins}/${kind.staging.directory(metadata)}`, metadata };
  }

  private referencesOf(kind: StagedKind): StageReferences {
    const { host } = this.deps;
    const known = this.references.get(kind) ?? new StageReferences({ host, paths: this.options.paths }, kind);
    this.references.set(kind, known);
    return known;
  }
}
