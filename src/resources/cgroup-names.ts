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
  const at = (...names: string[]): string => place(options, ["kubepods", ...names]);
  return { all: at(), burstable: at("burstable"), bestEffort: at("besteffort") };
}

/** The cgroup of a pod, as it is given to the runtime. */
export function podCgroup(pod: Pod, options: CgroupOptions): string {
  if (options.perQos === false) return options.root || "/";
  return candidates(pod.metadata.uid ?? "", options)[qosClass(pod)];
}

/** Where a pod of this UID may have its cgroup, whatever its class was. */
export function podCgroups(uid: string, options: CgroupOptions): readonly string[] {
  return Object.values(candidates(uid, options));
}

function candidates(uid: string, options: CgroupOptions): Record<"Guaranteed" | "Burstable" | "BestEffort", string> {
  const at = (...names: string[]): string => place(options, ["kubepods", ...names, `pod${uid}`]);
  return { Guaranteed: at(), Burstable: at("burstable"), BestEffort: at("besteffort") };
}

/** The path of a cgroup that the configuration names, as it is below the mount of a hierarchy. */
export function namedCgroup(name: string, driver: CgroupDriver): string {
  return place({ driver, root: name }, []);
}

/** The path to a cgroup by the names on the way, below the root that the configuration says. */
function place({ driver, root }: CgroupOptions, names: readonly string[]): string {
  const above = root.split("/").filter((part) => part !== "");
  if (driver === "cgroupfs") return `/${[...above, ...names].join("/")}`;
  return slicePath([...sliceNames(above), ...names.map(escaped)]);
}

/** A slice carries the names of all above it, so `-` parts them and cannot be in one: `a`, `b` is `/a.slice/a-b.slice`. */
function slicePath(names: readonly string[]): string {
  return names.map((_, i) => `/${names.slice(0, i + 1).join("-")}.slice`).join("");
}

/** The names of a root that is written as a path of cgroups, or as a slice. */
function sliceNames(parts: readonly string[]): readonly string[] {
  const last = parts.at(-1) ?? "";
  return last.endsWith(".slice") ? last.slice(0, -".slice".length).split("-") : parts.map(escaped);
}

function escaped(name: string): string {
  return name.replaceAll("-", "_");
}
