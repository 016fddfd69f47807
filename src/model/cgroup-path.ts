/** The UID in the name of a pod's cgroup, `pod1b2c-3d` or `kubepods-burstable-pod1b2c_3d.slice`; undefined for others. */
export function uidOfCgroup(name: string): string | undefined {
  if (!name.endsWith(".slice")) return /^pod(.+)$/.exec(name)?.[1];
  // `_` stands for `-`, which parts the names of slices.
  return /^(?:.*-)?pod([^-]+)\.slice$/.exec(name)?.[1]?.replaceAll("_", "-");
}

/** A container, as the path of its cgroup names it. */
export interface CgroupOwner {
  readonly podUid: string;
  readonly containerId: string;
}

/** The container that a cgroup, or one below it, belongs to: `/kubepods/pod1b2c/ID`, `…-pod1b2c.slice/cri-containerd-ID.scope`. */
export function ownerOfCgroup(path: string): CgroupOwner | undefined {
  const names = path.split("/");
  const at = names.findIndex((name) => uidOfCgroup(name) !== undefined);
  const podUid = uidOfCgroup(names[at] ?? "");
  const containerId = /^(?:.*-)?([0-9a-f]{12,})(?:\.scope)?$/.exec(names[at + 1] ?? "")?.[1];
  return podUid === undefined || containerId === undefined ? undefined : { podUid, containerId };
}
