import { type Abortable, manyListeners } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/log.ts";
import { sweep } from "../lib/sweep.ts";
import { Attempts } from "./attempts.ts";
import {
  podMount,
  type ReadyVolume,
  removeMountTarget,
  type SetUpDeps,
  type Stage,
  type TearDownDeps,
  type VolumeKind,
  type VolumeMetadata,
  type VolumeOfPod,
} from "./kind.ts";
import { stageBelow } from "./layout.ts";
import { MetadataError } from "./metadata.ts";
import type { OperationMeter } from "./metrics.ts";
import { isRemoteFilesystem } from "./mount-options.ts";
import type { VolumePaths } from "./paths.ts";
import { StageReferences } from "./stage-references.ts";
import { layoutOf, operationsOf, pluginOf, type StagedKind, turnOf } from "./staged-kind.ts";
import { SWEEP_PACE } from "./sweep-pace.ts";

export interface StagedVolumeDeps extends TearDownDeps {
  readonly log: Logger;
  readonly meter: OperationMeter;
  /** One call at a time for a stage. */
  readonly mutex: KeyedMutex;
}

/** Between two attempts to unstage, in milliseconds. */
const UNSTAGE_BACKOFF = { initialMs: 500, maxMs: 122_000 };

/** The words of Kubernetes. */
const IN_USE = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

/** A pod's volume on its way to being set up. */
interface SetUp {
  readonly kind: StagedKind;
  readonly of: VolumeOfPod;
  readonly metadata: VolumeMetadata;
  /** Undefined if the volume is only set up for its pod. */
  readonly stage: Stage | undefined;
  readonly deps: SetUpDeps;
}

/** Volumes that are mounted once a node and shared by their pods; see `VolumeStaging` for the order of the steps. */
export class StagedVolumes {
  private readonly references = new Map<VolumeKind, StageReferences>();
  private readonly attempts = new Attempts();
  private readonly backoff = new Backoff(UNSTAGE_BACKOFF);
  private retryTimer: Timer | undefined;

  constructor(
    private readonly deps: StagedVolumeDeps,
    private readonly options: {
      /** Those that may have stages. */
      kinds(): Promise<readonly StagedKind[]>;
      readonly paths: VolumePaths;
    },
  ) {}

  /** Stages the volume unless it is, and sets it up for the pod. Safe to repeat. */
  async setUp(
    kind: StagedKind,
    of: VolumeOfPod,
    { deps, ...options }: Abortable & { deps: SetUpDeps },
  ): Promise<ReadyVolume> {
    const metadata = await kind.staging.metadata(of, deps, options);
    const stage = this.stageOf(kind, metadata);
    const work = async (): Promise<ReadyVolume> => {
      await this.checkExclusive(kind, of, stage);
      const { readReference } = layoutOf(kind);
      if (await this.isEmpty(() => readReference(of.directory, this.deps.host))) this.attempts.isNew(of.directory);
      await this.referencesOf(kind).add(of.directory, metadata, stage?.directory);
      const one = { kind, of, metadata, stage, deps };
      if (stage !== undefined) await this.stage({ ...one, stage }, options);
      return this.publish(one, options);
    };
    const { meter, mutex } = this.deps;
    const plugin = pluginOf(kind, metadata);
    const isMigrated = kind.staging.isMigrated?.(of) === true;
    const operation = { plugin, operation: operationsOf(kind).setUp, isMigrated };
    const turn = (): Promise<ReadyVolume> => mutex.run(turnOf(kind, of, stage), work, options);
    return { ...(await meter.measure(operation, turn)), plugin };
  }

  /** What an earlier agent set up of the volume, if it is there as a whole. */
  async find(
    kind: StagedKind,
    of: VolumeOfPod,
    { deps, ...options }: Abortable & { deps: SetUpDeps },
  ): Promise<ReadyVolume | undefined> {
    const metadata = await kind.staging.metadata(of, deps, options);
    const found = await this.metadataOf(kind, of.directory);
    const stage = this.stageOf(kind, metadata);
    if (found === undefined || stage?.directory !== this.stageOf(kind, found)?.directory) return undefined;
    const ready = await kind.find?.(stage === undefined ? of : { ...of, stage }, deps, options);
    return ready && { ...ready, plugin: pluginOf(kind, metadata) };
  }

  /** Tears down a pod's volume and unstages it if no other pod uses it. Safe to repeat. */
  async tearDown(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    const { meter, mutex } = this.deps;
    const metadata = await this.metadataOf(kind, directory);
    if (metadata === undefined) return this.discard(kind, directory, options);
    const stage = this.stageOf(kind, metadata);
    const references = this.referencesOf(kind);
    const operation = { plugin: pluginOf(kind, metadata), operation: operationsOf(kind).tearDown };
    const work = async (): Promise<void> => {
      const volume = { directory, metadata, isUntouched: this.attempts.isUntouched(directory) };
      await meter.measure(operation, async () => kind.tearDown?.(volume, this.deps, options));
      const isLast = stage !== undefined && !(await references.isUsed(stage.directory, directory));
      if (isLast) await this.unstageOrRetry(kind, stage, options);
      await references.remove(directory);
      this.attempts.removed(directory);
    };
    await mutex.run(stage?.directory ?? directory, work, options);
  }

  /**
   * Unstages what no pod uses any more, as after a crash, a few at once; a driver that hangs keeps no others. Returns the
   * stages that could not be unstaged, and the plugins whose stages could not be listed.
   */
  async removeUnused(options: Abortable): Promise<readonly string[]> {
    const { host, clock } = this.deps;
    const { plugins } = this.options.paths;
    const left: string[] = [];
    const tried = async (kind: StagedKind, what: string, work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        if (options.signal.aborted) throw error;
        left.push(what);
        const about = { plugin: kind.plugin, directory: what, error: messageOf(error) };
        this.deps.log.warn("Failed to unstage unused volume", about);
      }
    };
    const stages: (readonly [StagedKind, string])[] = [];
    for (const kind of await this.options.kinds()) {
      await tried(kind, kind.plugin, async () => {
        for (const name of await kind.staging.list(plugins, host)) stages.push([kind, `${plugins}/${name}`]);
      });
    }
    const remove = ([kind, directory]: readonly [StagedKind, string]): Promise<void> =>
      tried(kind, directory, () => this.removeUnusedStage(kind, directory, options));
    await sweep(stages, remove, { ...SWEEP_PACE, signal: options.signal, clock });
    return left;
  }

  private removeUnusedStage(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    return this.deps.mutex.run(directory, () => this.removeIfUnused(kind, directory, options), options);
  }

  private async stage(one: SetUp & { readonly stage: Stage }, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const { kind, of, metadata, stage, deps } = one;
    const { directory } = stage;
    const { readStage, writeStage } = layoutOf(kind);
    await this.resolveConflict(one, options);
    if (await this.isEmpty(() => readStage(directory, host))) this.attempts.isNew(directory);
    await writeStage(directory, kind.staging.stageMetadata?.(metadata) ?? metadata, host);
    this.attempts.begin(directory);
    try {
      await kind.staging.stage({ ...of, stage }, deps, options);
    } catch (error) {
      // The metadata means that something may be staged, also to the next agent.
      const clean = async (): Promise<void> => {
        await kind.staging.discard?.(stage, this.deps, options);
        if (kind.staging.discard) await this.removeStage(kind, directory);
      };
      if (this.attempts.failed(directory, error)) await this.tryToClean(directory, clean);
      throw error;
    }
    this.attempts.done(directory);
  }

  /** A stage that does not fit is undone for the pod that needs another, unless it is in use. */
  private async resolveConflict(one: SetUp & { readonly stage: Stage }, options: Abortable): Promise<void> {
    const { kind, of, metadata, stage } = one;
    const { directory } = stage;
    if (kind.staging.conflict === undefined) return;
    const staged = await layoutOf(kind).readStage(directory, this.deps.host);
    const why = staged && kind.staging.conflict(staged, metadata);
    if (staged === undefined || why === undefined) return;
    const others = await this.referencesOf(kind).others(directory, of.directory);
    if (others.length > 0) {
      kind.staging.refused?.(of);
      throw new Error(why);
    }
    await this.unstage(kind, { directory, metadata: staged }, options);
  }

  private async publish({ kind, of, metadata, stage, deps }: SetUp, options: Abortable): Promise<ReadyVolume> {
    const { directory } = of;
    this.attempts.begin(directory);
    try {
      const ready = await kind.setUp(stage === undefined ? of : { ...of, stage }, deps, options);
      this.attempts.done(directory);
      return ready;
    } catch (error) {
      const clean = async (): Promise<void> => kind.discard?.({ directory, metadata }, this.deps, options);
      if (this.attempts.failed(directory, error)) await this.tryToClean(directory, clean);
      throw error;
    }
  }

  /** What cannot be removed is there after all, and is undone with the pod. */
  private async tryToClean(directory: string, clean: () => Promise<void>): Promise<void> {
    try {
      await clean();
    } catch (error) {
      this.attempts.begin(directory);
      this.deps.log.warn("Failed to clean up volume after a failed attempt", { directory, error: messageOf(error) });
    }
  }

  private async checkExclusive(kind: StagedKind, of: VolumeOfPod, stage: Stage | undefined): Promise<void> {
    if (kind.staging.isExclusive?.(of) !== true) return;
    const references = this.referencesOf(kind);
    const others = await (stage === undefined
      ? references.namesakes(of.directory)
      : references.others(stage.directory, of.directory));
    if (others.length > 0) throw new Error(IN_USE);
  }

  /** True if there is no metadata: nothing was begun. */
  private async isEmpty(read: () => Promise<VolumeMetadata | undefined>): Promise<boolean> {
    try {
      return (await read()) === undefined;
    } catch (error) {
      if (!(error instanceof MetadataError)) throw error;
      return false;
    }
  }

  private async removeIfUnused(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    if (await this.referencesOf(kind).isUsed(directory)) return;
    const metadata = await layoutOf(kind).readStage(directory, this.deps.host);
    // Without metadata nothing was mounted yet, or nothing is any more.
    if (metadata === undefined) {
      await kind.staging.discard?.({ directory, metadata: {} }, this.deps, options);
      return this.removeStage(kind, directory);
    }
    await this.unstage(kind, { directory, metadata }, options);
    this.deps.log.info("Unstaged unused volume", { plugin: kind.plugin, directory });
  }

  /** Undefined if the volume has none: then nothing was staged for it, or all of that is undone. */
  private async metadataOf(kind: StagedKind, directory: string): Promise<VolumeMetadata | undefined> {
    try {
      const found = await layoutOf(kind).readReference(directory, this.deps.host);
      if (found !== undefined) this.stageOf(kind, found);
      return found;
    } catch (error) {
      if (!(error instanceof MetadataError)) throw error;
      this.deps.log.warn("Failed to read volume metadata", { plugin: kind.plugin, directory, error: error.message });
      return undefined;
    }
  }

  /** Removes a volume without metadata. Its stage, and those that it may have used, are looked for a little later. */
  private async discard(kind: StagedKind, directory: string, options: Abortable): Promise<void> {
    const { host, mutex } = this.deps;
    const unmount = async (): Promise<void> => {
      const path = podMount(directory);
      const mayForce = isRemoteFilesystem((await host.mountAt(path))?.type ?? "");
      await host.unmountByCommand(path, { ...options, mayForce });
      await removeMountTarget(path, host, options);
    };
    const work = async (): Promise<void> => {
      await (kind.staging.forceDown?.(directory, this.deps, options) ?? unmount());
      await this.referencesOf(kind).remove(directory);
    };
    await this.deps.meter.forceClean(() => mutex.run(directory, work, options));
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
    const operation = { plugin: pluginOf(kind, stage.metadata), operation: operationsOf(kind).unstage };
    const isUntouched = await this.isEmpty(() => layoutOf(kind).readStage(stage.directory, this.deps.host));
    await this.deps.meter.measure(operation, () => kind.staging.unstage({ ...stage, isUntouched }, this.deps, options));
    await this.removeStage(kind, stage.directory);
  }

  private retry(): void {
    const { clock, log } = this.deps;
    if (this.retryTimer !== undefined) return;
    this.retryTimer = clock.after(this.backoff.next(clock.now()), () => {
      this.retryTimer = undefined;
      this.removeUnused({ signal: manyListeners().signal }).then(
        (left) => (left.length === 0 ? this.backoff.reset() : this.retry()),
        (error: unknown) => {
          log.warn("Failed to list unused stages", { error: messageOf(error) });
          this.retry();
        },
      );
    });
  }

  private async removeStage(kind: StagedKind, directory: string): Promise<void> {
    await layoutOf(kind).removeStage(directory, this.deps.host);
    this.attempts.removed(directory);
  }

  private stageOf(kind: StagedKind, metadata: VolumeMetadata): Stage | undefined {
    const below = stageBelow(kind.staging, metadata);
    return below === undefined ? undefined : { directory: `${this.options.paths.plugins}/${below}`, metadata };
  }

  private referencesOf(kind: StagedKind): StageReferences {
    const { host } = this.deps;
    const known = this.references.get(kind) ?? new StageReferences({ host, paths: this.options.paths }, kind);
    this.references.set(kind, known);
    return known;
  }
}
