import type { PersistentVolumeSpec, Pod } from "../../src/model/generated/types.ts";
import type { VolumeKind } from "../../src/volumes/index.ts";
import { pod } from "./pods.ts";
import type { VolumeMachine } from "./volume-machine.ts";
import { VolumeScene } from "./volumes.ts";

export interface ClaimedOptions {
  readonly readOnly?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Besides those that there are anyway. */
  readonly kinds?: readonly VolumeKind[];
  readonly machine?: VolumeMachine;
}

/** Volumes of pods that share the PersistentVolume `pv-1` behind the claim `data`. */
export class ClaimedScene extends VolumeScene {
  private readonly isBlock: boolean;

  constructor(spec: PersistentVolumeSpec, options: ClaimedOptions = {}) {
    const { readOnly = false, annotations = {}, kinds, machine } = options;
    const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "data", readOnly } }];
    super(volumes, kinds === undefined ? {} : { kinds }, machine);
    this.isBlock = spec.volumeMode === "Block";
    this.objects.put(
      { kind: "PersistentVolumeClaim", namespace: "default", name: "data" },
      {
        metadata: { name: "data", namespace: "default", uid: "claim-1" },
        spec: { volumeName: "pv-1" },
        status: { phase: "Bound" },
      },
    );
    this.objects.put(
      { kind: "PersistentVolume", namespace: "", name: "pv-1" },
      { metadata: { name: "pv-1", annotations }, spec: { claimRef: { uid: "claim-1" }, ...spec } },
    );
  }

  /** Another agent with these kinds takes over. */
  restart(kinds: readonly VolumeKind[]): void {
    this.volumes = this.agentWith(kinds);
  }

  /** A pod that uses the claim. */
  user(name: string, fields: Partial<Pod["spec"]> = {}): Pod {
    const uses = this.isBlock
      ? { volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }
      : { volumeMounts: [{ name: "v", mountPath: "/v" }] };
    const { volumes = [] } = this.web.spec;
    return pod(name)
      .container("app", uses)
      .with({ volumes, ...fields })
      .build();
  }

  /** No API server answers, and what it knew is gone. */
  loseApiServer(): void {
    this.objects.remove({ kind: "PersistentVolumeClaim", namespace: "default", name: "data" });
    this.objects.remove({ kind: "PersistentVolume", namespace: "", name: "pv-1" });
    this.objects.fault = new Error("connection refused");
  }

  teardown(name: string): Promise<void> {
    return this.volumes.teardown(`uid-of-${name}`, this.never);
  }

  /** What is left of volumes: mounts, links, locks and paths that contain one of the words. */
  left(...words: readonly string[]): readonly string[] {
    const { mounts, links, locked, modes } = this.machine;
    const paths = [...modes.keys()].filter((path) => words.some((word) => path.includes(word)));
    return [...mounts.keys(), ...links.keys(), ...locked, ...paths];
  }
}
