import { directoryName, type VolumeHost, type VolumeKind } from "./kind.ts";
import { FILES_BESIDE } from "./layout.ts";

/** What of a kind decides where its volumes lie. */
type Placed = Pick<VolumeKind, "plugin"> & { readonly staging?: Pick<NonNullable<VolumeKind["staging"]>, "layout"> };

/** Where volumes lie below the agent's root directory, as in Kubernetes. */
export class VolumePaths {
  constructor(private readonly rootDir: string) {}

  get pods(): string {
    return `${this.rootDir}/pods`;
  }

  /** Stages of all kinds. */
  get plugins(): string {
    return `${this.rootDir}/plugins`;
  }

  pod(uid: string): string {
    return `${this.pods}/${uid}`;
  }

  volumes(uid: string): string {
    return `${this.pod(uid)}/volumes`;
  }

  /** The directory of a pod for the volumes of a kind. */
  kind(uid: string, kind: Placed): string {
    return `${this.place(uid, kind)}/${directoryName(kind)}`;
  }

  /** The directory of a pod with those of kinds. */
  place(uid: string, { staging }: Placed): string {
    return `${this.pod(uid)}/${(staging?.layout ?? FILES_BESIDE).place}`;
  }

  volume(uid: string, kind: Placed, name: string): string {
    return `${this.kind(uid, kind)}/${name}`;
  }

  /** The directories of a pod's volumes of a kind. */
  async list(uid: string, kind: Placed, host: Pick<VolumeHost, "list">): Promise<readonly string[]> {
    return (await host.list(this.kind(uid, kind))).map((name) => this.volume(uid, kind, name));
  }

  /** A file that is there while a volume of the pod has not been given to its group as a whole. */
  groupMark(uid: string, volume: string): string {
    return `${this.pod(uid)}/volume-groups/${volume}`;
  }

  subPaths(uid: string): string {
    return `${this.pod(uid)}/volume-subpaths`;
  }
}

/** The names in a directory and in those below it, `depth` levels down: `a/b` for a depth of 2. */
export async function listLevels(
  directory: string,
  depth: number,
  host: Pick<VolumeHost, "list">,
): Promise<readonly string[]> {
  const names = await host.list(directory);
  if (depth <= 1) return names;
  const below = await Promise.all(
    names.map(async (name) =>
      (await listLevels(`${directory}/${name}`, depth - 1, host)).map((one) => `${name}/${one}`),
    ),
  );
  return below.flat();
}
