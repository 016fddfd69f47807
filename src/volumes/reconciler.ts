import { type Abortable, AbortScope, TimeLimitError, withScope } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod, Volume } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { NextTry, PodIdentity } from "../model/step.ts";
import { FollowedVolume, SET_UP_BACKOFF, setUpFailed } from "./followed-volume.ts";
import type { VolumeDeps, VolumeKind, VolumeOfPod, VolumeSource } from "./kind.ts";
import { VOLUME_KINDS } from "./kinds/index.ts";

export interface ReconcilerDeps extends VolumeDeps {
  readonly log: Logger;
  event(pod: PodIdentity, event: { type: "Normal" | "Warning"; reason: string; message: string }): void;
  /** What the pod waits for and when that is tried again; undefined when it does not wait any more. */
  waiting(pod: PodIdentity, next: NextTry | undefined): void;
}

export interface PrepareOptions extends Abortable {
  /** Hears what is waited for whenever that changes: which volumes, since when, why. */
  readonly onWait?: (detail: string) => void;
}

/** A volume that a pod waits for. */
interface Wait {
  readonly since: number;
  readonly why: string;
  /** Wall-clock milliseconds of the next attempt. */
  readonly next: number;
}

interface PodSet {
  readonly volumes: Map<string, FollowedVolume>;
}

/** How directories of unknown pods are removed; `rest` takes away what else such a pod left, before the directory goes. */
export interface OrphanOptions extends Abortable {
  rest?(uid: string): Promise<void>;
}

/** A pod's start waits for its volumes this long before it is planned anew, as in Kubernetes. */
const WAIT_LIMIT_MS = 123_000;

/**
 * Brings the volumes that pods want and those that are there together, below `ROOT/pods/UID`. Pods and volumes do not
 * wait for each other; only the pod that asked waits for its own.
 */
export class VolumeReconciler {
  private readonly pods = new Map<string, PodSet>();
  /** Pods whose directories were looked at for what an earlier agent left. */
  private readonly looked = new Set<string>();
  /** Pods whose volumes were taken down and not asked for since. */
  private readonly down = new Set<string>();

  constructor(
    private readonly deps: ReconcilerDeps,
    private readonly options: { readonly rootDir: string },
  ) {}

  /**
   * Makes every volume of the pod ready, all at the same time, and tries those that fail again until they are, the
   * signal aborts or the limit is over. Ends only when nothing is being made any more: then they may be taken down.
   */
  async prepare(pod: Pod, options: PrepareOptions): Promise<void> {
    const volumes = pod.spec.volumes ?? [];
    if (volumes.length === 0) return;
    // Made first and closed to others: the volumes below are not.
    const { uid } = podIdentity(pod);
    this.down.delete(uid);
    await this.deps.host.makeDir(this.podDir(uid), 0o750);
    const followed = volumes.map((volume) => this.follow(pod, volume));
    const waits = new Map<string, Wait>();
    const tell = (): void => this.tell(pod, waits, options);
    const limit = { clock: this.deps.clock, ms: WAIT_LIMIT_MS };
    await withScope([options.signal], limit, async (signal) => {
      const results = await Promise.allSettled(
        followed.map((volume) => this.waitFor(volume, { pod, waits, tell, signal })),
      );
      const failed = results.find((result) => result.status === "rejected");
      if (failed === undefined) return;
      if (!(signal.reason instanceof TimeLimitError)) throw failed.reason;
      const names = [...waits.keys()].join(", ");
      const whys = [...waits].map(([name, { why }]) => `${name}: ${why}`).join("; ");
      throw new Error(
        `unmounted volumes=[${names}], unattached volumes=[], failed to process volumes=[]: context deadline exceeded (${whys})`,
      );
    });
  }

  /**
   * Whether nothing but the agent's own work is missing for the pod's volumes: their objects are there, and none of them
   * is of a kind that others have a say in. Never rejects.
   */
  async isAtHand(pod: Pod, options: Abortable): Promise<boolean> {
    const volumes = pod.spec.volumes ?? [];
    const kinds = volumes.map((volume) => VOLUME_KINDS.find((kind) => kind.handles(volume)));
    if (!kinds.every((kind) => kind?.isPlain === true)) return false;
    const references = volumes.map((volume, at) => {
      const kind = kinds[at];
      return kind?.references?.(this.of(pod, volume, kind));
    });
    if (references.some((reference) => (reference?.trustBundles ?? []).length > 0)) return false;
    const refs = references.flatMap((reference) => reference?.objects ?? []);
    try {
      const found = await Promise.all(refs.map((ref) => this.deps.objects.get(ref, options)));
      return found.every((object) => object !== undefined);
    } catch {
      // Whoever makes the volumes says why they cannot be made.
      return false;
    }
  }

  /** What a container gets of a volume. Only after `prepare`. */
  source(pod: Pod, name: string): VolumeSource {
    const known = (pod.spec.volumes ?? []).some((volume) => volume.name === name);
    if (!known) throw new Error(`volumeMounts names the volume "${name}", which the pod does not have`);
    const source = this.pods.get(podIdentity(pod).uid)?.volumes.get(name)?.source;
    if (source === undefined) throw new Error(`the volume "${name}" is not ready`);
    return source;
  }

  /** Mounts a part of a volume for a container and answers where; the same place for the same mount. */
  async subPath(
    pod: Pod,
    mount: { volume: string; container: string; index: number; subPath: string },
    options: Abortable,
  ): Promise<string> {
    const source = this.source(pod, mount.volume);
    if (source.kind !== "path") throw new Error("a volume without a directory has no subPath");
    // A path that the user chose may hang: it is asked for in a child process before it is opened here.
    if (source.isUsers === true) await this.deps.host.kindOf(source.path, options);
    const target = `${this.subPaths(podIdentity(pod).uid)}/${mount.volume}/${mount.container}/${mount.index}`;
    await this.deps.host.bindSubPath({ root: source.path, subPath: mount.subPath, target });
    return target;
  }

  /**
   * Takes over what pods are wanted, with their newest metadata. Volumes that an earlier agent left for one of them are
   * followed from now on, whether its containers are touched or not.
   */
  wanted(pods: readonly Pod[]): void {
    const now = new Set<string>();
    for (const pod of pods) {
      const { uid } = podIdentity(pod);
      now.add(uid);
      for (const volume of this.pods.get(uid)?.volumes.values() ?? []) volume.update(pod);
      if (this.looked.has(uid)) continue;
      this.looked.add(uid);
      this.adopt(pod).catch((error: unknown) =>
        this.deps.log.warn("volumes of an earlier agent could not be looked at", { uid, error: messageOf(error) }),
      );
    }
    for (const uid of this.looked) if (!now.has(uid)) this.looked.delete(uid);
    for (const uid of this.down) if (!now.has(uid)) this.down.delete(uid);
  }

  /** Takes down all that the pod's directory holds, by what is there and not by what the spec says. Safe to repeat. */
  async teardown(uid: string, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const set = this.pods.get(uid);
    this.pods.delete(uid);
    this.down.add(uid);
    await Promise.all([...(set?.volumes.values() ?? [])].map((volume) => volume.close()));
    await this.removeSubPaths(uid, options);
    for (const kind of VOLUME_KINDS) {
      if (kind.plugin === "") continue;
      const base = `${this.base(uid)}/${kind.plugin}`;
      for (const name of await host.list(base)) {
        options.signal.throwIfAborted();
        await kind.tearDown(`${base}/${name}`, host);
      }
    }
  }

  /**
   * Removes the directories of pods that nobody knows any more. What has something mounted that is not ours to unmount
   * stays, and is the answer. Call it only when every source and the runtime have said what they know.
   */
  async removeOrphans(isKnown: (uid: string) => boolean, options: OrphanOptions): Promise<readonly string[]> {
    const { host, log } = this.deps;
    const left: string[] = [];
    for (const uid of await host.list(`${this.options.rootDir}/pods`)) {
      if (isKnown(uid) || this.pods.has(uid)) continue;
      try {
        await this.teardown(uid, options);
        await options.rest?.(uid);
        await host.removeTree(this.podDir(uid));
        log.info("removed the directory of a pod that nobody knows", { uid });
      } catch (error) {
        if (options.signal.aborted) throw error;
        left.push(uid);
        log.warn("the directory of a pod that nobody knows stays", { uid, error: messageOf(error) });
      }
    }
    return left;
  }

  private async waitFor(
    volume: FollowedVolume,
    context: { pod: Pod; waits: Map<string, Wait>; tell: () => void; signal: AbortSignal },
  ): Promise<void> {
    const { pod, waits, tell, signal } = context;
    const { clock } = this.deps;
    const backoff = new Backoff(SET_UP_BACKOFF);
    for (;;) {
      const { version } = volume;
      let delayMs = 0;
      try {
        await volume.ensure({ signal });
        if (waits.delete(volume.name)) tell();
        return;
      } catch (error) {
        if (signal.aborted) throw error;
        const { wall } = clock.now();
        delayMs = Math.min(backoff.next(clock.now()), volume.longestPauseMs);
        const since = waits.get(volume.name)?.since ?? wall;
        waits.set(volume.name, { since, why: messageOf(error), next: wall + delayMs });
        tell();
        this.deps.event(podIdentity(pod), {
          ...{ type: "Warning", reason: "FailedMount", message: setUpFailed(volume.name, error) },
        });
      }
      const scope = new AbortScope([signal]);
      try {
        // Whichever comes first: the next attempt is due, or what it waits for has changed.
        const due = clock.sleep(delayMs, { signal: scope.signal });
        await Promise.race([due, volume.untilChanged(version, { signal: scope.signal })]);
      } finally {
        scope.abort();
        scope.dispose();
      }
      signal.throwIfAborted();
    }
  }

  private tell(pod: Pod, waits: ReadonlyMap<string, Wait>, { onWait }: PrepareOptions): void {
    const detail = describeWaits(waits);
    const at = Math.min(...[...waits.values()].map(({ next }) => next));
    onWait?.(detail);
    this.deps.waiting(podIdentity(pod), waits.size === 0 ? undefined : { at, why: detail });
  }

  private follow(pod: Pod, volume: Volume): FollowedVolume {
    const identity = podIdentity(pod);
    const set = this.pods.get(identity.uid) ?? { volumes: new Map<string, FollowedVolume>() };
    this.pods.set(identity.uid, set);
    const known = set.volumes.get(volume.name);
    if (known !== undefined) {
      known.update(pod);
      return known;
    }
    const kind = kindOf(volume);
    const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
      this.deps.event(identity, { type, reason, message });
    const hooks = { log: this.deps.log, event };
    const made = new FollowedVolume(this.of(pod, volume, kind), kind, { make: this.deps, hooks });
    set.volumes.set(volume.name, made);
    return made;
  }

  private async adopt(pod: Pod): Promise<void> {
    const { uid } = podIdentity(pod);
    for (const volume of pod.spec.volumes ?? []) {
      const kind = VOLUME_KINDS.find((candidate) => candidate.handles(volume));
      if (kind?.isLive !== true) continue;
      const there = await this.deps.host.list(`${this.base(uid)}/${kind.plugin}`);
      // Taken down or no longer wanted while we looked: then there is nothing to follow.
      if (!this.looked.has(uid) || this.down.has(uid)) return;
      if (there.includes(volume.name)) this.follow(pod, volume).adopt();
    }
  }

  private async removeSubPaths(uid: string, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const base = this.subPaths(uid);
    if ((await host.list(base)).length === 0) return host.removeTree(base);
    // Innermost and latest first.
    for (const target of [...(await host.mountsBelow(base))].reverse()) {
      options.signal.throwIfAborted();
      await host.unmount(target);
    }
    await host.removeTree(base);
  }

  private of(pod: Pod, volume: Volume, { plugin }: VolumeKind): VolumeOfPod {
    return { pod, volume, directory: `${this.base(podIdentity(pod).uid)}/${plugin}/${volume.name}` };
  }

  private base(uid: string): string {
    return `${this.podDir(uid)}/volumes`;
  }

  private subPaths(uid: string): string {
    return `${this.podDir(uid)}/volume-subpaths`;
  }

  private podDir(uid: string): string {
    return `${this.options.rootDir}/pods/${uid}`;
  }
}

function kindOf(volume: Volume): VolumeKind {
  const kind = VOLUME_KINDS.find((candidate) => candidate.handles(volume));
  if (kind === undefined) throw new Error(`volume "${volume.name}" is of a kind that is not supported`);
  return kind;
}

/** `config since 10:11:12Z: configmap "config" not found; …` */
function describeWaits(waits: ReadonlyMap<string, Wait>): string {
  const one = ([name, { since, why }]: [string, Wait]): string =>
    `${name} since ${new Date(since).toISOString().slice(11, 19)}Z: ${why}`;
  return [...waits].map(one).join("; ");
}
