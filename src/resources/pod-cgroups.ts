import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { type CgroupOptions, podCgroup, podCgroups } from "./cgroup-names.ts";

export interface CgroupDeps {
  readonly host: { removeCgroup(path: string): Promise<void> };
  readonly log: Pick<Logger, "warn">;
  /** Kills whatever is in a cgroup or below it; tells how many processes that were. */
  endProcesses(path: string): number;
}

/** Names the cgroups of pods and takes them away again; their limits come with the lifecycle issue. */
export class PodCgroups {
  constructor(
    private readonly deps: CgroupDeps,
    private readonly options: CgroupOptions,
  ) {}

  parentOf(pod: Pod): string {
    return podCgroup(pod, this.options);
  }

  /**
   * Removes the pod's cgroup in every hierarchy; succeeds when there is none. Called when the runtime has stopped all
   * that it knows of: what still runs there is what it forgot, and is killed, as in Kubernetes.
   */
  async remove(uid: string): Promise<void> {
    const { host, log } = this.deps;
    for (const path of podCgroups(uid, this.options)) {
      const processes = this.deps.endProcesses(path);
      if (processes > 0) log.warn("killed what the runtime had left in the cgroup of a pod", { uid, processes });
      await host.removeCgroup(path);
    }
  }
}
