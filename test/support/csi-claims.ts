import type { PersistentVolumeClaim } from "../../src/model/generated/types.ts";
import type { ClusterSite } from "./cluster-site.ts";
import { TEST_IMAGES } from "./containerd.ts";

/** A volume of a driver, and the claim that gets it. */
export interface CsiClaim {
  /** Of the claim; the PersistentVolume is `pv-NAME`, its handle `vol-NAME`. */
  readonly name: string;
  readonly driver: string;
  readonly size?: string;
  /** Of the CSI source. */
  readonly source?: object;
  /** Of the PersistentVolume and, where it has the field, of the claim. */
  readonly accessModes?: readonly string[];
  readonly volumeMode?: "Filesystem" | "Block";
  readonly mountOptions?: readonly string[];
  readonly storageClass?: string;
}

/** Makes a PersistentVolume and the claim that is bound to it. */
export function makeClaim(site: ClusterSite, of: CsiClaim): void {
  site.create(claimObjects(of));
}

/** The PersistentVolume and the claim. */
export function claimObjects(of: CsiClaim): readonly object[] {
  const { name, driver, size = "1Gi", accessModes = ["ReadWriteOnce"], volumeMode = "Filesystem", mountOptions } = of;
  const storageClassName = of.storageClass ?? "";
  return [
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: { storage: size },
        accessModes,
        volumeMode,
        storageClassName,
        ...(mountOptions && { mountOptions }),
        persistentVolumeReclaimPolicy: "Retain",
        claimRef: { namespace: "default", name },
        csi: { driver, volumeHandle: `vol-${name}`, ...of.source },
      },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name },
      spec: {
        accessModes,
        volumeMode,
        storageClassName,
        volumeName: `pv-${name}`,
        resources: { requests: { storage: size } },
      },
    },
  ];
}

/**
 * Does what a driver's resizer does, in its order: the claim says that it grows before the volume has its new size. What
 * is on the volume has not grown.
 */
export function grow(site: ClusterSite, name: string, size: string): void {
  const patch = (what: readonly string[], body: object): void =>
    void site.kubectl("patch", ...what, "--type=merge", "-p", JSON.stringify(body));
  patch(["pvc", name], { spec: { resources: { requests: { storage: size } } } });
  patch(["pvc", name, "--subresource=status"], {
    status: {
      allocatedResources: { storage: size },
      allocatedResourceStatuses: { storage: "ControllerResizeInProgress" },
    },
  });
  patch(["pv", `pv-${name}`], { spec: { capacity: { storage: size } } });
  patch(["pvc", name, "--subresource=status"], {
    status: {
      allocatedResources: { storage: size },
      allocatedResourceStatuses: { storage: "NodeResizePending" },
      conditions: [{ type: "FileSystemResizePending", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
    },
  });
}

export function claimStatus(site: ClusterSite, name: string): NonNullable<PersistentVolumeClaim["status"]> {
  return site.get<PersistentVolumeClaim>("pvc", name).status ?? {};
}

/** The volume of a claim in a pod, under the name `v`. */
export function volumesOf(claim: string, more: object = {}): object {
  return { volumes: [{ name: "v", persistentVolumeClaim: { claimName: claim, ...more } }] };
}

/** A container that runs a script, with the volume `v` at /v unless told otherwise. */
export function shell(script: string, more: object = { volumeMounts: [{ name: "v", mountPath: "/v" }] }): object {
  const command = ["/bin/sh", "-c", `${script}\ntrap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done`];
  return { name: "main", image: TEST_IMAGES.busybox, imagePullPolicy: "Never", command, ...more };
}
