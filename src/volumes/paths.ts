import { directoryName, type VolumeHost, type VolumeKind } from "./kind.ts";

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

  volume(uid: string, kind: Pick<VolumeKind, "plugin">, name: string): string {
    return `${this.volumes(uid)}/${directoryName(kind)}/${name}`;
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
