import type { Pod } from "../model/generated/types.ts";
import { type CgroupOptions, podCgroup, podCgroups } from "./cgroup-names.ts";

/** Names the cgroups of pods and takes them away again; their limits come with the lifecycle issue. */
export class PodCgroups {
  constructor(
    private readonly deps: { host: { removeCgroup(path: string): Promise<void> } },
    private readonly options: CgroupOptions,
  ) {}

  parentOf(pod: Pod): string {
    return podCgroup(pod, this.options);
  }

  /** Removes the pod's cgroup in every hierarchy; succeeds when there is none. */
  async remove(uid: string): Promise<void> {
    for (const path of podCgroups(uid, this.options)) await this.deps.host.removeCgroup(path);
  }
}
