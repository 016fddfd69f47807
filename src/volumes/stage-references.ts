import { directoryName, type VolumeHost, type VolumeKind, type VolumeStaging } from "./kind.ts";
import { MetadataError, readMetadata, removeMetadata, writeMetadata } from "./metadata.ts";
import type { VolumePaths } from "./paths.ts";

/** The users of the stages of one kind: directories of pods' volumes by the directory of their stage. */
interface Index {
  readonly users: Map<string, Set<string>>;
  /** Directories whose metadata cannot be read: each of them may use any stage. */
  readonly unknown: Set<string>;
}

/**
 * Which pods use which stages of one kind. The truth is on disk: a pod's `vol_data.json` is its reference. It is scanned
 * once, before the first stage is given up, and followed from then on. Calls about one stage must not overlap.
 */
export class StageReferences {
  private index: Promise<Index> | undefined;

  constructor(
    private readonly deps: { readonly host: VolumeHost; readonly paths: VolumePaths },
    private readonly kind: VolumeKind & { readonly staging: VolumeStaging },
  ) {}

  /** Persists that the volume with this directory uses a stage, before anything is staged for it. */
  async add(
    directory: string,
    stage: { directory: string; metadata: Readonly<Record<string, string>> },
  ): Promise<void> {
    const { host } = this.deps;
    await host.makeDir(directory, 0o750);
    await writeMetadata(directory, stage.metadata, host);
    const index = await this.current();
    index?.unknown.delete(directory);
    index?.users.set(stage.directory, (index.users.get(stage.directory) ?? new Set()).add(directory));
  }

  /** Removes the reference of a volume that is torn down, if it has one. */
  async remove(directory: string): Promise<void> {
    await removeMetadata(directory, this.deps.host);
    const index = await this.current();
    index?.unknown.delete(directory);
    for (const [stage, users] of index?.users ?? []) {
      if (users.delete(directory) && users.size === 0) index?.users.delete(stage);
    }
  }

  /** True if a volume other than `except` uses the stage, or may use it. */
  async isUsed(stage: string, except?: string): Promise<boolean> {
    this.index ??= this.scan();
    const { users, unknown } = await this.index;
    return [...unknown, ...(users.get(stage) ?? [])].some((directory) => directory !== except);
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
    const { host, paths } = this.deps;
    const index: Index = { users: new Map(), unknown: new Set() };
    for (const uid of await host.list(paths.pods)) {
      for (const name of await host.list(`${paths.volumes(uid)}/${directoryName(this.kind)}`)) {
        const directory = paths.volume(uid, this.kind, name);
        try {
          const metadata = await readMetadata(directory, host);
          if (metadata === undefined) continue;
          const stage = `${paths.plugins}/${this.kind.staging.directory(metadata)}`;
          index.users.set(stage, (index.users.get(stage) ?? new Set()).add(directory));
        } catch (error) {
          if (!(error instanceof MetadataError)) throw error;
          index.unknown.add(directory);
        }
      }
    }
    return index;
  }
}
