import type { Abortable } from "../lib/abort.ts";
import { KeyedBackoff } from "../lib/backoff.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { sweep } from "../lib/sweep.ts";
import type { Pod, Volume } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { PodIdentity } from "../model/step.ts";
import { CheckSlots } from "./check-slots.ts";
import type { DriverSpaces } from "./driver-spaces.ts";
import { ClaimExpander } from "./expansion/claim-expander.ts";
import { GroupMark } from "./group-mark.ts";
import {
  directoryName,
  type VolumeDeps,
  type VolumeKind,
  type VolumeOfPod,
  type VolumeReferences,
  type VolumeSource,
} from "./kind.ts";
import { type KindFamily, KindList } from "./kind-list.ts";
import { VOLUME_KINDS } from "./kinds/index.ts";
import { OperationMeter, type VolumeCount, volumeGauges } from "./metrics.ts";
import { isRemoteFilesystem } from "./mount-options.ts";
import { TearDownError, type TearDownFailure, tearDownFailed, VolumeOperations } from "./operations.ts";
import { VolumePaths } from "./paths.ts";
import { PodVolume, SET_UP_BACKOFF, type VolumePlace } from "./pod-volume.ts";
import { releaseHung } from "./release-hung.ts";
import { SWEEP_PACE } from "./sweep-pace.ts";
import { type PrepareOptions, VolumeWait, type VolumeWaitDeps } from "./volume-wait.ts";

export interface ReconcilerDeps extends VolumeDeps, VolumeWaitDeps {
  readonly log: Logger;
  readonly metrics?: Metrics;
  readonly spaces?: Pick<DriverSpaces, "add" | "remove">;
}

interface PodSet {
  readonly volumes: Map<string, PodVolume>;
}

export interface ReconcilerOptions {
  readonly rootDir: string;
  /** Defaults to all that there are. */
  readonly kinds?: readonly VolumeKind[];
  /** Kinds that are known at run time only. */
  readonly families?: readonly KindFamily[];
}

/** How directories of orphaned pods are removed; `rest` removes what else such a pod left, before the directory goes. */
export interface OrphanOptions extends Abortable {
  rest?(uid: string): Promise<void>;
}

/**
 * Reconciles the volumes that pods want with those below `ROOT/pods/UID`. Pods and volumes do not wait for each other;
 * only the pod that asked waits for its own.
 */
export class VolumeReconciler {
  private readonly pods = new Map<string, PodSet>();
  /** Pods whose directories were listed for volumes of an earlier agent. */
  private readonly listed = new Set<string>();
  /** Pods whose volumes were torn down and not prepared since. */
  private readonly down = new Set<string>();
  /** Volumes of wanted pods that an earlier agent set up and that were not prepared since, by pod and name: their plugins. */
  private readonly found = new Map<string, ReadonlyMap<string, string>>();
  private desired: readonly Pod[] = [];
  /** Of pods that are wanted or have volumes, for events. */
  private readonly identities = new Map<string, PodIdentity>();
  /** Of orphaned pods that could not be removed, by UID. */
  private readonly orphanBackoff = new KeyedBackoff<string>(SET_UP_BACKOFF);
  /** Of wanted pods whose volumes could not be listed, by UID. */
  private readonly adoptBackoff = new KeyedBackoff<string>(SET_UP_BACKOFF);
  private readonly paths: VolumePaths;
  private readonly meter: OperationMeter;
  private readonly operations: VolumeOperations;
  private readonly expander: ClaimExpander;
  private readonly slots: CheckSlots;
  private readonly gauges: ReturnType<typeof volumeGauges>;

  constructor(
    private readonly deps: ReconcilerDeps,
    { rootDir, kinds = VOLUME_KINDS, families = [] }: ReconcilerOptions,
  ) {
    this.paths = new VolumePaths(rootDir);
    this.meter = new OperationMeter(deps.clock, deps.metrics);
    this.expander = new ClaimExpander({ ...deps, meter: this.meter });
    this.slots = new CheckSlots(deps.clock);
    const { meter, expander } = this;
    this.operations = new VolumeOperations(
      { ...deps, meter, expander },
      { kinds: new KindList(kinds, families), paths: this.paths },
    );
    this.gauges = volumeGauges(deps.metrics, () => this.counts());
  }

  /**
   * Makes every volume of the pod ready, all at the same time, and tries those that fail again until they are, the
   * signal aborts or the limit is over. Ends only when nothing is being set up any more: then they may be torn down.
   */
  async prepare(pod: Pod, options: PrepareOptions): Promise<void> {
    const volumes = pod.spec.volumes ?? [];
    if (volumes.length === 0) return;
    // Made first and closed to others: the volumes below are not.
    const identity = podIdentity(pod);
    const { uid } = identity;
    this.identities.set(uid, identity);
    this.down.delete(uid);
    await this.deps.host.makeDir(this.paths.pod(uid), 0o750);
    const followed = volumes.map((volume) => this.follow(pod, volume));
    await new VolumeWait(this.deps, pod, options).all(followed);
  }

  /**
   * True if the pod's volumes can be set up without waiting: their objects exist, and none of them is of a kind that
   * depends on anything else. Never rejects.
   */
  async isAtHand(pod: Pod, options: Abortable): Promise<boolean> {
    const volumes = pod.spec.volumes ?? [];
    const kinds = volumes.map((volume) => this.operations.kindOf(volume));
    if (!kinds.every((kind) => kind?.isPlain === true)) return false;
    const references = volumes.map((volume, at) => {
      const kind = kinds[at];
      return kind?.references?.(this.of(pod, volume, kind));
    });
    const waits = (of: VolumeReferences | undefined): boolean =>
      (of?.trustBundles ?? []).length + (of?.podCertificates ?? []).length > 0;
    if (references.some(waits)) return false;
    const refs = references.flatMap((reference) => reference?.objects ?? []);
    try {
      const found = await Promise.all(refs.map((ref) => this.deps.objects.get(ref, options)));
      return found.every((object) => object !== undefined);
    } catch {
      // `prepare` reports why they cannot be set up.
      return false;
    }
  }

  /** Returns what a container gets of a volume. Only after `prepare`. */
  source(pod: Pod, name: string): VolumeSource {
    const known = (pod.spec.volumes ?? []).some((volume) => volume.name === name);
    if (!known) throw new Error(`volumeMounts: volume "${name}" not found in the pod`);
    const source = this.pods.get(podIdentity(pod).uid)?.volumes.get(name)?.source;
    if (source === undefined) throw new Error(`volume "${name}" is not ready`);
    return source;
  }

  /** Where the space of a volume is counted; undefined if it is not set up, or has none. */
  place(pod: Pod, name: string): VolumePlace | undefined {
    return this.pods.get(podIdentity(pod).uid)?.volumes.get(name)?.place;
  }

  /** Groups that processes of the pod need to use its volumes. Only after `prepare`. */
  groups(pod: Pod): readonly number[] {
    const volumes = this.pods.get(podIdentity(pod).uid)?.volumes.values() ?? [];
    return [...new Set([...volumes].flatMap(({ gid }) => gid ?? []))];
  }

  /** Mounts a part of a volume for a container and returns the path; the same path for the same mount. */
  async subPath(
    pod: Pod,
    mount: { volume: string; container: string; index: number; subPath: string },
    options: Abortable,
  ): Promise<string> {
    const source = this.source(pod, mount.volume);
    if (source.kind !== "path") throw new Error("subPath requires a volume with a directory");
    // A path that the user chose may hang: it is asked for in a child process before it is opened here.
    if (source.isUsers === true || source.isRemote === true) await this.deps.host.kindOf(source.path, options);
    const target = `${this.paths.subPaths(podIdentity(pod).uid)}/${mount.volume}/${mount.container}/${mount.index}`;
    await this.deps.host.bindSubPath({ root: source.path, subPath: mount.subPath, target });
    return target;
  }

  /**
   * Takes the desired pods, with their newest metadata. Volumes that an earlier agent left for one of them are
   * followed from now on, whether its containers are touched or not.
   */
  wanted(pods: readonly Pod[]): void {
    this.desired = pods;
    const now = new Set<string>();
    for (const pod of pods) {
      const identity = podIdentity(pod);
      const { uid } = identity;
      now.add(uid);
      this.identities.set(uid, identity);
      for (const volume of this.pods.get(uid)?.volumes.values() ?? []) volume.update(pod);
      if (this.listed.has(uid)) continue;
      this.listed.add(uid);
      this.adoptOrRetry(pod);
    }
    for (const uid of this.listed) if (!now.has(uid)) this.listed.delete(uid);
    for (const uid of this.down) if (!now.has(uid)) this.down.delete(uid);
    for (const uid of this.found.keys()) if (!now.has(uid)) this.found.delete(uid);
  }

  /** Ends what processes of a pod that terminates wait for from servers that do not answer: see `releaseHung`. */
  async release(uid: string, options: Abortable): Promise<void> {
    await releaseHung(this.deps, this.paths.pod(uid), options);
  }

  /** Tears down all that the pod's directory holds, by what is there and not by what the spec says. Safe to repeat. */
  async teardown(uid: string, options: Abortable): Promise<void> {
    const set = this.pods.get(uid);
    this.pods.delete(uid);
    this.found.delete(uid);
    this.down.add(uid);
    await Promise.all([...(set?.volumes.values() ?? [])].map((volume) => volume.close()));
    try {
      await this.removeSubPaths(uid, options);
      await this.operations.tearDownPod(uid, options);
      this.expander.released(uid);
      this.identities.delete(uid);
    } catch (error) {
      if (error instanceof TearDownError) this.reportFailures(uid, error.failures);
      throw error;
    }
  }

  /** The pod is deleted, and its user would not know what it waits for. */
  private reportFailures(uid: string, failures: readonly TearDownFailure[]): void {
    const identity = this.identities.get(uid);
    if (identity === undefined) return;
    for (const failure of failures) {
      this.deps.event(identity, { type: "Warning", reason: "FailedUnMount", message: tearDownFailed(failure) });
    }
  }

  /**
   * Removes the directories of orphaned pods, and stages that no pod uses. Directories in which something is mounted
   * that is not ours to unmount are left and returned. Call it only after every source and the runtime were listed.
   */
  async removeOrphans(isKnown: (uid: string) => boolean, options: OrphanOptions): Promise<readonly string[]> {
    const known = (uid: string): boolean => isKnown(uid) || this.pods.has(uid);
    const orphans = (await this.deps.host.list(this.paths.pods)).filter((uid) => !known(uid));
    // One that came to be known while it waited for its turn is none any more: static pods come back with their UIDs.
    const remove = async (uid: string): Promise<boolean> => !known(uid) && this.isLeftOrphan(uid, options);
    const isLeft = await sweep(orphans, remove, { ...SWEEP_PACE, signal: options.signal, clock: this.deps.clock });
    const left = orphans.filter((_uid, at) => isLeft[at]);
    this.gauges.orphans(orphans.length, left.length);
    return [...left, ...(await this.operations.removeUnusedStages(options))];
  }

  /** Removes an orphaned pod; true if something of it is left. One whose driver hangs keeps no other. */
  private async isLeftOrphan(podUID: string, options: OrphanOptions): Promise<boolean> {
    const { host, log, clock } = this.deps;
    if (this.orphanBackoff.remaining(podUID, clock.now()) > 0) return true;
    try {
      await this.teardown(podUID, options);
      await options.rest?.(podUID);
      await host.removeTree(this.paths.pod(podUID));
      this.orphanBackoff.reset(podUID);
      log.info("Removed orphaned pod directory", { podUID });
      return false;
    } catch (error) {
      if (options.signal.aborted) throw error;
      this.orphanBackoff.next(podUID, clock.now());
      log.warn("Failed to remove orphaned pod directory", { podUID, error: messageOf(error) });
      return true;
    }
  }

  private follow(pod: Pod, volume: Volume): PodVolume {
    const identity = podIdentity(pod);
    const set = this.pods.get(identity.uid) ?? { volumes: new Map<string, PodVolume>() };
    this.pods.set(identity.uid, set);
    const known = set.volumes.get(volume.name);
    if (known !== undefined) {
      known.update(pod);
      return known;
    }
    const kind = this.operations.kindOf(volume);
    if (kind === undefined) throw new Error(`volume "${volume.name}" is of a kind that is not supported`);
    const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
      this.deps.event(identity, { type, reason, message });
    const hooks = { log: this.deps.log, event };
    const { operations, meter, slots } = this;
    const groupMark = new GroupMark(this.deps.host, this.paths.groupMark(identity.uid, volume.name));
    const deps = { ...this.deps, operations, meter, slots, hooks, groupMark };
    const followed = new PodVolume(this.of(pod, volume, kind), kind, deps);
    set.volumes.set(volume.name, followed);
    return followed;
  }

  /** Adopts what an earlier agent left, again with back-off if it cannot be listed: tokens in it would expire. */
  private adoptOrRetry(pod: Pod): void {
    const { clock, log } = this.deps;
    const { uid } = podIdentity(pod);
    const retry = (): void => {
      const newest = this.desired.find((one) => podIdentity(one).uid === uid);
      if (newest !== undefined && !this.down.has(uid)) this.adoptOrRetry(newest);
      else this.adoptBackoff.reset(uid);
    };
    this.adopt(pod).then(
      () => this.adoptBackoff.reset(uid),
      (error: unknown) => {
        log.warn("Failed to list volumes of a running pod", { uid, error: messageOf(error) });
        clock.after(this.adoptBackoff.next(uid, clock.now()), retry);
      },
    );
  }

  private async adopt(pod: Pod): Promise<void> {
    const { uid } = podIdentity(pod);
    const found = new Map<string, string>();
    const { host } = this.deps;
    const present = new Set(await host.list(this.paths.volumes(uid)));
    for (const volume of pod.spec.volumes ?? []) {
      const kind = this.operations.kindOf(volume);
      if (kind === undefined || !present.has(directoryName(kind))) continue;
      const there = await host.list(`${this.paths.volumes(uid)}/${directoryName(kind)}`);
      // Torn down or no longer wanted meanwhile: then there is nothing to follow.
      if (!this.listed.has(uid) || this.down.has(uid)) return;
      if (!there.includes(volume.name)) continue;
      found.set(volume.name, kind.plugin);
      if (kind.isLive === true) this.follow(pod, volume).adopt();
    }
    if (found.size > 0) this.found.set(uid, found);
    await this.adoptStaged(pod);
  }

  /** Follows staged volumes, behind claims too: some have to be set up again from time to time, the others stay. */
  private async adoptStaged(pod: Pod): Promise<void> {
    const { uid } = podIdentity(pod);
    const staged = (pod.spec.volumes ?? []).filter((volume) => {
      const kind = this.operations.kindOf(volume);
      return kind !== undefined && (kind.staging !== undefined || kind.plugin === "");
    });
    if (staged.length === 0 || !(await this.operations.hasStaged(uid))) return;
    const isRefreshed = await this.operations.isRefreshed(uid, { signal: new AbortController().signal });
    if (!this.listed.has(uid) || this.down.has(uid)) return;
    for (const volume of staged) {
      const followed = this.follow(pod, volume);
      followed.find();
      if (isRefreshed) followed.adopt();
    }
  }

  /** What `volume_manager_total_volumes` counts, with Kubernetes' word for a plugin that is not known (yet). */
  private *counts(): Iterable<VolumeCount> {
    for (const pod of this.desired) {
      const { uid } = podIdentity(pod);
      if (this.down.has(uid)) continue;
      for (const volume of pod.spec.volumes ?? []) {
        const ready = this.pods.get(uid)?.volumes.get(volume.name)?.plugin ?? this.found.get(uid)?.get(volume.name);
        const plugin = (ready ?? this.operations.kindOf(volume)?.plugin) || "N/A";
        yield { plugin, state: "desired_state_of_world" };
        if (ready !== undefined) yield { plugin, state: "actual_state_of_world" };
      }
    }
  }

  private async removeSubPaths(uid: string, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const base = this.paths.subPaths(uid);
    if ((await host.list(base)).length === 0) return host.removeTree(base);
    // Innermost and latest first.
    for (const target of [...(await host.mountsBelow(base))].reverse()) {
      options.signal.throwIfAborted();
      const type = (await host.mountAt(target))?.type ?? "";
      // Parts of what a server has: the volume itself is still mounted, so that nothing is lost by force.
      if (isRemoteFilesystem(type)) await host.unmountByCommand(target, { ...options, mayForce: true });
      else await host.unmount(target);
    }
    await host.removeTree(base);
  }

  private of(pod: Pod, volume: Volume, kind: VolumeKind): VolumeOfPod {
    const name = kind.directoryOf?.(volume, pod) ?? volume.name;
    return { pod, volume, directory: this.paths.volume(podIdentity(pod).uid, kind, name) };
  }
}
