import { basename } from "node:path";
import type { VolumeHost, VolumeKind, VolumeLayout, VolumeMetadata, VolumeStaging } from "./kind.ts";
import { FILES_BESIDE, stageBelow } from "./layout.ts";
import type { VolumePaths } from "./paths.ts";

/** The users of the stages of one kind: directories of pods' volumes by the directory of their stage. */
interface Index {
  readonly users: Map<string, Set<string>>;
  /** Directories whose metadata cannot be read: each of them may use any stage. */
  readonly unknown: Set<string>;
  /** Pods whose volumes cannot be listed. */
  readonly unlisted: Set<string>;
}

/**
 * Which pods use which stages of one kind. The truth is on disk: the references of their volumes. It is scanned once,
 * before the first stage is given up, and followed from then on. Calls about one stage must not overlap.
 */
export class StageReferences {
  private index: Promise<Index> | undefined;
  private readonly layout: VolumeLayout;

  constructor(
    private readonly deps: { readonly host: VolumeHost; readonly paths: VolumePaths },
    private readonly kind: VolumeKind & { readonly staging: VolumeStaging },
  ) {
    this.layout = kind.staging.layout ?? FILES_BESIDE;
  }

  /** Persists what the volume with this directory is, and the stage that it uses, before anything is done for it. */
  async add(directory: string, metadata: VolumeMetadata, stage: string | undefined): Promise<void> {
    await this.layout.writeReference(directory, metadata, this.deps.host);
    const index = await this.current();
    index?.unknown.delete(directory);
    if (stage !== undefined) index?.users.set(stage, (index.users.get(stage) ?? new Set()).add(directory));
  }

  /** Removes the reference of a volume that is torn down, if it has one, and its directory. */
  async remove(directory: string): Promise<void> {
    await this.layout.removeReference(directory, this.deps.host);
    const index = await this.current();
    index?.unknown.delete(directory);
    for (const [stage, users] of index?.users ?? []) {
      if (users.delete(directory) && users.size === 0) index?.users.delete(stage);
    }
  }

  /** True if a volume other than `except` uses the stage, or may use it. */
  async isUsed(stage: string, except?: string): Promise<boolean> {
    this.index ??= this.scan();
    const index = await this.index;
    await this.readAgain(index);
    const { users, unknown, unlisted } = index;
    const isOther = [...unknown, ...(users.get(stage) ?? [])].some((directory) => directory !== except);
    return isOther || unlisted.size > 0;
  }

  /**
   * The directories of volumes other than `except` that use the stage. Of those whose metadata cannot be read it is one of
   * the same name: that of the PersistentVolume.
   */
  async others(stage: string, except: string): Promise<readonly string[]> {
    this.index ??= this.scan();
    const index = await this.index;
    await this.readAgain(index);
    const name = basename(except);
    const unknown = [...index.unknown].filter((directory) => basename(directory) === name);
    const unlisted = await this.mountedIn(index.unlisted, name);
    return [...(index.users.get(stage) ?? []), ...unknown, ...unlisted].filter((directory) => directory !== except);
  }

  /** The directories of volumes of the same name in other pods: of those that are not staged. */
  async namesakes(except: string): Promise<readonly string[]> {
    const { host, paths } = this.deps;
    const found: string[] = [];
    for (const uid of await host.list(paths.pods)) {
      const directory = paths.volume(uid, this.kind, basename(except));
      const isThere = await paths.list(uid, this.kind, host).then(
        (directories) => directories.includes(directory),
        async () => (await this.mountedIn([uid], basename(except))).length > 0,
      );
      if (isThere && directory !== except) found.push(directory);
    }
    return found;
  }

  /** The directories of volumes of a name in pods that cannot be listed, by what is mounted there. */
  private async mountedIn(uids: Iterable<string>, name: string): Promise<readonly string[]> {
    const { host, paths } = this.deps;
    const directories = [...uids].map((uid) => paths.volume(uid, this.kind, name));
    const mounts = await Promise.all(directories.map((directory) => host.mountsBelow(directory)));
    return directories.filter((_directory, at) => mounts[at]?.length !== 0);
  }

  /** Undefined before the first `isUsed`, or if the scan failed: then the disk is scanned again. */
  private async current(): Promise<Index | undefined> {
    return this.index?.catch(() => undefined);
  }

  private async scan(): Promise<Index> {
    try {
      return await this.readIndex();
    } catch (error) {
      this.index = undefined;
      throw error;
    }
  }

  private async readIndex(): Promise<Index> {
    const index: Index = { users: new Map(), unknown: new Set(), unlisted: new Set() };
    for (const uid of await this.deps.host.list(this.deps.paths.pods)) await this.readPod(index, uid);
    return index;
  }

  /** What could not be read: a disk may have recovered, and damaged metadata may have been written anew. */
  private async readAgain(index: Index): Promise<void> {
    for (const uid of [...index.unlisted]) await this.readPod(index, uid);
    for (const directory of [...index.unknown]) await this.readVolume(index, directory);
  }

  /** Never rejects: what is wrong with one pod's directory must not keep others. */
  private async readPod(index: Index, uid: string): Promise<void> {
    const { host, paths } = this.deps;
    try {
      const directories = await paths.list(uid, this.kind, host);
      index.unlisted.delete(uid);
      for (const directory of directories) await this.readVolume(index, directory);
    } catch {
      index.unlisted.add(uid);
    }
  }

  /** Never rejects. */
  private async readVolume(index: Index, directory: string): Promise<void> {
    const { host, paths } = this.deps;
    const wasUnknown = index.unknown.has(directory);
    /** Torn down while it was read: what was read is not so any more. */
    const isGone = (): boolean => wasUnknown && !index.unknown.has(directory);
    try {
      const metadata = await this.layout.readReference(directory, host);
      if (isGone()) return;
      index.unknown.delete(directory);
      const below = metadata && stageBelow(this.kind.staging, metadata);
      if (below === undefined) return;
      const stage = `${paths.plugins}/${below}`;
      index.users.set(stage, (index.users.get(stage) ?? new Set()).add(directory));
    } catch {
      if (!isGone()) index.unknown.add(directory);
    }
  }
}
