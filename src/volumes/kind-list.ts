import type { PersistentVolumeSpec, Volume } from "../model/generated/types.ts";
import { directoryName, type VolumeHost, type VolumeKind } from "./kind.ts";
import type { StagedKind } from "./staged-kind.ts";

/** Kinds that are known at run time only, as those of drivers that somebody installs. Each is always the same object. */
export interface KindFamily {
  /** The kind of a volume, or of a PersistentVolume, of this family. */
  ofVolume(volume: Volume): VolumeKind | undefined;
  ofPersistent(spec: PersistentVolumeSpec): VolumeKind | undefined;
  /** The kind whose volumes lie in directories of this name. */
  ofDirectory(name: string): VolumeKind | undefined;
  /** The kinds that have stages on disk. */
  staged(pluginsDir: string, host: VolumeHost): Promise<readonly VolumeKind[]>;
}

/** Every kind of volume, by what it is asked for. */
export class KindList {
  constructor(
    /** Those that there always are. */
    readonly fixed: readonly VolumeKind[],
    private readonly families: readonly KindFamily[] = [],
  ) {}

  ofVolume(volume: Volume): VolumeKind | undefined {
    const found = this.fixed.find((kind) => kind.handles?.(volume) === true);
    return found ?? first(this.families, (family) => family.ofVolume(volume));
  }

  ofPersistent(spec: PersistentVolumeSpec): VolumeKind | undefined {
    const found = this.fixed.find((kind) => kind.handlesPersistent?.(spec) === true);
    return found ?? first(this.families, (family) => family.ofPersistent(spec));
  }

  /** Those with volumes in directories of these names. */
  inDirectories(names: Iterable<string>): readonly VolumeKind[] {
    const known = new Set(this.fixed.map(directoryName));
    const others = [...new Set(names)].filter((name) => !known.has(name));
    const found = others.map((name) => first(this.families, (family) => family.ofDirectory(name)));
    return [...this.fixed, ...found.filter((kind) => kind !== undefined)];
  }

  /** Those that may have stages. */
  async staged(pluginsDir: string, host: VolumeHost): Promise<readonly StagedKind[]> {
    const found = await Promise.all(this.families.map((family) => family.staged(pluginsDir, host)));
    return [...this.fixed, ...found.flat()].filter(isStaged);
  }
}

export function isStaged(kind: VolumeKind): kind is StagedKind {
  return kind.staging !== undefined;
}

function first<T, R>(all: readonly T[], of: (one: T) => R | undefined): R | undefined {
  for (const one of all) {
    const found = of(one);
    if (found !== undefined) return found;
  }
  return undefined;
}
