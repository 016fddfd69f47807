import type { Pod } from "../model/generated/types.ts";
import { qosClass } from "../model/qos.ts";

export type CgroupDriver = "cgroupfs" | "systemd";

export interface CgroupOptions {
  readonly driver: CgroupDriver;
  /** Parent of everything, `/` by default. */
  readonly root: string;
  /** False puts every pod right below the root, without cgroups of our own. */
  readonly perQos?: boolean;
}

/** The cgroups above those of pods. */
export function classCgroups(options: CgroupOptions): {
  readonly all: string;
  readonly burstable: string;
  readonly bestEffort: string;
} {
  const isPlain = options.driver === "cgroupfs";
  const all = isPlain ? "/kubepods" : "/kubepods.slice";
  return {
    all: join(options, all),
    burstable: join(options, isPlain ? `${all}/burstable` : `${all}/kubepods-burstable.slice`),
    bestEffort: join(options, isPlain ? `${all}/besteffort` : `${all}/kubepods-besteffort.slice`),
  };
}

/** The cgroup of a pod, as it is given to the runtime (3.1 of the node reference). */
export function podCgroup(pod: Pod, options: CgroupOptions): string {
  if (options.perQos === false) return options.root || "/";
  return join(options, candidates(pod.metadata.uid ?? "", options.driver)[qosClass(pod)]);
}

/** Where a pod of this UID may have its cgroup, whatever its class was. */
export function podCgroups(uid: string, options: CgroupOptions): readonly string[] {
  return Object.values(candidates(uid, options.driver)).map((path) => join(options, path));
}

function candidates(uid: string, driver: CgroupDriver): Record<"Guaranteed" | "Burstable" | "BestEffort", string> {
  if (driver === "cgroupfs") {
    return {
      Guaranteed: `/kubepods/pod${uid}`,
      Burstable: `/kubepods/burstable/pod${uid}`,
      BestEffort: `/kubepods/besteffort/pod${uid}`,
    };
  }
  const escaped = uid.replaceAll("-", "_");
  return {
    Guaranteed: `/kubepods.slice/kubepods-pod${escaped}.slice`,
    Burstable: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${escaped}.slice`,
    BestEffort: `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${escaped}.slice`,
  };
}

function join({ root }: CgroupOptions, path: string): string {
  return root === "/" || root === "" ? path : `${root.replace(/\/$/, "")}${path}`;
}
