import type { Abortable } from "../lib/abort.ts";
import type { Pod, Volume } from "../model/generated/types.ts";
import type { VolumeHost, VolumeKind, VolumeOfPod } from "./kind.ts";
import { VOLUME_KINDS } from "./kinds/index.ts";

/** Makes and takes down the volumes of pods below `ROOT/pods/UID/volumes`. */
export class PodVolumes {
  constructor(
    private readonly deps: { host: VolumeHost },
    private readonly options: { rootDir: string },
  ) {}

  /**
   * Makes every volume of the pod ready, all at the same time; the first problem is the answer, once all have ended:
   * whoever hears of it may take them down.
   */
  async prepare(pod: Pod, options: Abortable): Promise<void> {
    const { host } = this.deps;
    const volumes = pod.spec.volumes ?? [];
    if (volumes.length === 0) return;
    // Made first and closed to others: the volumes below are not.
    await host.makeDir(this.podDir(pod.metadata.uid ?? ""), 0o750);
    const setUp = async (volume: Volume): Promise<void> =>
      this.kindOf(volume).setUp(this.of(pod, volume), host, options);
    for (const result of await Promise.allSettled(volumes.map(setUp)))
      if (result.status === "rejected") throw result.reason;
  }

  /** Where a volume lies on the host. */
  hostPath(pod: Pod, name: string): string {
    const volume = (pod.spec.volumes ?? []).find((candidate) => candidate.name === name);
    if (volume === undefined) throw new Error(`volumeMounts names the volume "${name}", which the pod does not have`);
    return this.kindOf(volume).hostPath(this.of(pod, volume));
  }

  /** Takes down all that the pod's directory holds, by what is there and not by what the spec says. */
  async teardown(uid: string, options: Abortable): Promise<void> {
    const { host } = this.deps;
    for (const kind of VOLUME_KINDS) {
      if (kind.plugin === "") continue;
      const base = `${this.base(uid)}/${kind.plugin}`;
      for (const name of await host.list(base)) {
        options.signal.throwIfAborted();
        await kind.tearDown(`${base}/${name}`, host);
      }
    }
  }

  private kindOf(volume: Volume): VolumeKind {
    const kind = VOLUME_KINDS.find((candidate) => candidate.handles(volume));
    if (kind === undefined) throw new Error(`volume "${volume.name}" is of a kind that is not supported`);
    return kind;
  }

  private of(pod: Pod, volume: Volume): VolumeOfPod {
    const { plugin } = this.kindOf(volume);
    return { pod, volume, directory: `${this.base(pod.metadata.uid ?? "")}/${plugin}/${volume.name}` };
  }

  private base(uid: string): string {
    return `${this.podDir(uid)}/volumes`;
  }

  private podDir(uid: string): string {
    return `${this.options.rootDir}/pods/${uid}`;
  }
}
