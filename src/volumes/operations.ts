import { basename } from "node:path";
import type { Abortable } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/log.ts";
import { ownValue } from "../lib/own-value.ts";
import type { Volume } from "../model/generated/types.ts";
import { matchesNodeSelector } from "../model/node-selector.ts";
import { podIdentity } from "../model/pod-facts.ts";
import { removedSource } from "../model/removed-volumes.ts";
import {
  MOUNT_OPERATIONS,
  type PersistentSource,
  type ReadyVolume,
  type SetUpDeps,
  type VolumeDeps,
  type VolumeKind,
  type VolumeNode,
  type VolumeOfClaim,
  type VolumeOfPod,
} from "./kind.ts";
import { isStaged, type KindList } from "./kind-list.ts";
import { FILES_BESIDE } from "./layout.ts";
import type { OperationMeter } from "./metrics.ts";
import { mountOptionsOf } from "./mount-options.ts";
import type { VolumePaths } from "./paths.ts";
import type { StagedKind } from "./staged-kind.ts";
import { StagedVolumes } from "./staged-volumes.ts";
import { aboutVolume, VolumeStepError } from "./volume-error.ts";

export interface OperationDeps extends VolumeDeps {
  readonly expander: SetUpDeps["expander"];
  readonly log: Logger;
  readonly meter: OperationMeter;
}

export interface OperationOptions {
  readonly kinds: KindList;
  readonly paths: VolumePaths;
}

/** A volume of a pod that could not be torn down. */
export interface TearDownFailure {
  /** The name of the volume's directory: that of the PersistentVolume if there is one. */
  readonly volume: string;
  readonly error: unknown;
}

/** Volumes of a pod are left; the message says why, for each. */
export class TearDownError extends Error {
  override readonly name = "TearDownError";

  constructor(readonly failures: readonly TearDownFailure[]) {
    super(failures.map(tearDownFailed).join("; "));
  }
}

/** The words that Kubernetes has for it. */
export function tearDownFailed({ volume, error }: TearDownFailure): string {
  return `UnmountVolume.TearDown failed for volume "${volume}" : ${messageOf(error)}`;
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
    this.setUpDeps = {
      ...deps,
      setUpPersistent: (of, call) => this.setUpPersistent(of, call),
      findPersistent: (of, call) => this.findPersistent(of, call),
    };
    const stagedKinds = (): Promise<readonly StagedKind[]> => kinds.staged(paths.plugins, deps.host);
    this.staged = new StagedVolumes({ ...deps, mutex: this.mutex }, { kinds: stagedKinds, paths });
  }

  /** The kind of a volume of a pod's spec, if there is one. */
  kindOf(volume: Volume): VolumeKind | undefined {
    return this.options.kinds.ofVolume(volume);
  }

  /** Makes a volume ready for its pod; stages it first where its kind does that. Safe to repeat. */
  async setUp(kind: VolumeKind, of: VolumeOfPod, options: Abortable): Promise<ReadyVolume> {
    // A claim is only resolved here: the operation is that of the kind behind it.
    if (kind.plugin === "") return kind.setUp(of, this.setUpDeps, options);
    if (isStaged(kind)) return this.staged.setUp(kind, of, { ...options, deps: this.setUpDeps });
    const { plugin, operations = MOUNT_OPERATIONS } = kind;
    const work = (): Promise<ReadyVolume> =>
      this.mutex.run(of.directory, () => kind.setUp(of, this.setUpDeps, options), options);
    return { ...(await this.deps.meter.measure({ plugin, operation: operations.setUp }, work)), plugin };
  }

  /** What an earlier agent set up of a volume, if it is there as a whole. Nothing is done to it. */
  async find(kind: VolumeKind, of: VolumeOfPod, options: Abortable): Promise<ReadyVolume | undefined> {
    if (!isStaged(kind)) return kind.find?.(of, this.setUpDeps, options);
    return this.staged.find(kind, of, { ...options, deps: this.setUpDeps });
  }

  /** True if an earlier agent left staged volumes of the pod. */
  async hasStaged(uid: string): Promise<boolean> {
    for (const kind of (await this.kindsOf(uid)).filter(isStaged)) {
      if ((await this.options.paths.list(uid, kind, this.deps.host)).length > 0) return true;
    }
    return false;
  }

  /** True if a staged volume of the pod has to be set up again from time to time, or if that cannot be found out. */
  async isRefreshed(uid: string, options: Abortable): Promise<boolean> {
    for (const kind of (await this.kindsOf(uid)).filter(isStaged)) {
      if (kind.staging.isRefreshed === undefined) continue;
      const { readReference } = kind.staging.layout ?? FILES_BESIDE;
      for (const directory of await this.options.paths.list(uid, kind, this.deps.host)) {
        try {
          const metadata = await readReference(directory, this.deps.host);
          if (metadata !== undefined && (await kind.staging.isRefreshed?.(metadata, this.deps, options))) return true;
        } catch {
          // To set up again does no harm, and is tried until it can be done.
          return true;
        }
      }
    }
    return false;
  }

  /**
   * Tears down every volume in a pod's directory, by what is there, all at the same time: one whose server or driver is
   * gone does not keep the others. Rejects with a `TearDownError` if some are left. Safe to repeat.
   */
  async tearDownPod(uid: string, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const { paths } = this.options;
    const kinds = await this.kindsOf(uid);
    const failures: TearDownFailure[] = [];
    const tearDown = async (kind: VolumeKind, directory: string): Promise<void> => {
      try {
        await this.tearDown(kind, directory, options);
      } catch (error) {
        failures.push({ volume: basename(directory), error });
      }
    };
    const volumes: (readonly [VolumeKind, string])[] = [];
    for (const kind of kinds) {
      for (const directory of await paths.list(uid, kind, host)) volumes.push([kind, directory]);
    }
    options.signal.throwIfAborted();
    await Promise.all(volumes.map(([kind, directory]) => tearDown(kind, directory)));
    options.signal.throwIfAborted();
    if (failures.length > 0) throw new TearDownError(failures);
    // What is left is of no kind that is known here, and may be somebody's data.
    for (const place of this.places(uid)) await host.removeEmptyTree(place);
  }

  private places(uid: string): ReadonlySet<string> {
    return new Set(this.options.kinds.fixed.map((kind) => this.options.paths.place(uid, kind)));
  }

  /** The kinds that the pod has volumes of, by what is on disk. */
  private async kindsOf(uid: string): Promise<readonly VolumeKind[]> {
    const { paths, kinds } = this.options;
    const present = new Set<string>();
    const names = new Set<string>();
    for (const place of this.places(uid)) {
      for (const name of await this.deps.host.list(place)) {
        present.add(`${place}/${name}`);
        names.add(name);
      }
    }
    const all = kinds.inDirectories(names);
    return all.filter((kind) => kind.tearDown !== undefined && present.has(paths.kind(uid, kind)));
  }

  /** Unstages what no pod uses any more, as after a crash. Returns the stages that could not be unstaged. */
  removeUnusedStages(options: Abortable): Promise<readonly string[]> {
    return this.staged.removeUnused(options);
  }

  private async findPersistent(of: VolumeOfClaim, options: Abortable): Promise<ReadyVolume | undefined> {
    const { metadata, spec } = of.persistent.object;
    const kind = this.options.kinds.ofPersistent(spec);
    if (kind === undefined) return undefined;
    const directory = this.options.paths.volume(podIdentity(of.pod).uid, kind, metadata.name ?? "");
    return this.find(kind, { ...of, directory }, options);
  }

  private async setUpPersistent(of: VolumeOfClaim, options: Abortable): Promise<ReadyVolume> {
    const { metadata, spec } = of.persistent.object;
    const kind = this.options.kinds.ofPersistent(spec);
    if (kind === undefined) {
      const why = removedSource(spec) ?? "its source is of a kind that is not supported";
      throw new Error(`volume "${metadata.name}": ${why}`);
    }
    const name = metadata.name ?? "";
    const directory = this.options.paths.volume(podIdentity(of.pod).uid, kind, name);
    try {
      checkPersistent(kind, of.persistent, this.deps.node);
      return await this.setUp(kind, { ...of, directory }, options);
    } catch (error) {
      throw options.signal.aborted ? error : aboutVolume(name, error);
    }
  }

  private async tearDown(kind: VolumeKind, directory: string, options: Abortable): Promise<void> {
    if (isStaged(kind)) return this.staged.tearDown(kind, directory, options);
    const { plugin, operations = MOUNT_OPERATIONS } = kind;
    const operation = { plugin, operation: operations.tearDown };
    const work = async (): Promise<void> => kind.tearDown?.({ directory, metadata: {} }, this.deps, options);
    await this.mutex.run(directory, () => this.deps.meter.measure(operation, work), options);
  }
}

const NODE_AFFINITY = { step: "MountVolume.NodeAffinity check failed", reason: "FailedMount" } as const;
const MOUNT_OPTIONS = { step: "MountVolume.MountOptionSupport check failed", reason: "FailedMount" } as const;

/** Throws for a PersistentVolume that belongs to another node, or asks for what its kind cannot do. */
function checkPersistent(kind: VolumeKind, persistent: PersistentSource, { labels }: VolumeNode): void {
  const { nodeAffinity } = kind.persistentOf?.(persistent.object).spec ?? persistent.object.spec;
  const required = nodeAffinity?.required;
  // The only field is the node's name, which is also a label.
  const name = ownValue(labels, "kubernetes.io/hostname") ?? "";
  if (required !== undefined && !matchesNodeSelector(required, { name, labels })) {
    throw new VolumeStepError(NODE_AFFINITY, "no matching NodeSelectorTerms");
  }
  if (kind.refusesMountOptions === true && mountOptionsOf(persistent).length > 0) {
    throw new VolumeStepError(MOUNT_OPTIONS, "mount options are not supported for this volume type");
  }
}
