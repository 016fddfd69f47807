import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { uidOfCgroup } from "../model/cgroup-path.ts";
import type { Pod } from "../model/generated/types.ts";
import { type CgroupValues, largerValues, podCgroupValues } from "../model/pod-cgroup-values.ts";
import { type CgroupOptions, classCgroups, podCgroup, podCgroups } from "./cgroup-names.ts";
import { type LimitRules, type RequestedMemory, requestedMemory } from "./class-values.ts";
import { LimitWriter } from "./limit-writer.ts";
import { RootCgroups } from "./root-cgroups.ts";

/** The machine's cgroups, as `adapters/cgroup` has them. */
export interface CgroupHost {
  ensure(path: string): Promise<void>;
  /** Returns what the kernel refused. */
  set(path: string, values: CgroupValues): Promise<readonly string[]>;
  exists(path: string): boolean;
  read(path: string): CgroupValues | undefined;
  forget(path: string): Promise<void>;
  /** Bytes used by the cgroup below `path` that carries the container's id in its name. */
  memoryUsage(path: string, containerId: string): number | undefined;
  unreclaimable(path: string): number | undefined;
  /** Names of the cgroups right below one. */
  childrenOf(path: string): readonly string[];
}

export interface CgroupDeps {
  readonly host: { removeCgroup(path: string): Promise<void> };
  readonly tree: CgroupHost;
  readonly log: Pick<Logger, "warn">;
  /** Kills whatever is in a cgroup or below it; returns how many processes that were. */
  endProcesses(path: string): number;
  /** Records an event about the node. */
  event?(type: "Normal" | "Warning", reason: string, message: string): void;
  /** Refreshed together with these: the cgroups of the host's daemons and of the agent. */
  readonly beside?: readonly { refresh(): Promise<void> }[];
}

/**
 * The tree `kubepods / class / pod` with its limits. A limit that the kernel refuses is warned of once, and the pod runs
 * without it; a cgroup that it refuses is an error.
 */
export class PodCgroups {
  private readonly limits: LimitWriter;
  private readonly roots: RootCgroups;
  private readonly pods = new Map<string, Pod>();

  constructor(
    private readonly deps: CgroupDeps,
    private readonly options: CgroupOptions & { rules(): LimitRules },
  ) {
    this.limits = new LimitWriter(deps.tree, deps.log);
    this.roots = new RootCgroups({ ...deps, limits: this.limits }, options);
  }

  /** Bytes of memory that the pods request, by class. */
  get requested(): RequestedMemory {
    return requestedMemory([...this.pods.values()]);
  }

  parentOf(pod: Pod): string {
    return podCgroup(pod, this.options);
  }

  /**
   * Makes the pod's cgroup and sets its limits; with `growOnly` none becomes less than it was, for containers that get
   * their own lower limits first. Called whenever the pod is about to start something; cheap to repeat.
   */
  async ensure(pod: Pod, options: { growOnly?: boolean } = {}): Promise<void> {
    if (this.options.perQos === false) return;
    const rules = this.options.rules();
    await this.roots.ensure(rules);
    const path = this.parentOf(pod);
    const wanted = podCgroupValues(pod, rules);
    const values = options.growOnly === true ? largerValues(this.limits.valuesOf(path), wanted) : wanted;
    if (!this.limits.isWritten(path, values) || !this.deps.tree.exists(path)) {
      this.limits.invalidate(path);
      await this.deps.tree.ensure(path);
      await this.limits.set(path, values);
    }
    const before = this.pods.get(pod.metadata.uid ?? "");
    this.pods.set(pod.metadata.uid ?? "", pod);
    if (before !== pod) await this.roots.follow(rules, [...this.pods.values()]);
  }

  /** Whether the pod's cgroup is there; true where pods have none of their own. */
  exists(pod: Pod): boolean {
    return this.options.perQos === false || this.deps.tree.exists(this.parentOf(pod));
  }

  /**
   * Sets the limits of all pods together, of the classes and of the host's daemons as configured, and again if somebody
   * changed them: a safety net beside what is set when pods come and go. Never rejects.
   */
  async refresh(): Promise<void> {
    if (this.options.perQos !== false) await this.roots.refresh(this.options.rules(), [...this.pods.values()]);
    for (const other of this.deps.beside ?? []) await other.refresh();
  }

  /** Bytes of memory that a container of the pod uses now. */
  memoryUsage(pod: Pod, containerId: string): number | undefined {
    return this.options.perQos === false ? undefined : this.deps.tree.memoryUsage(this.parentOf(pod), containerId);
  }

  /** What the kernel has for the pod now. */
  read(pod: Pod): CgroupValues | undefined {
    return this.options.perQos === false ? undefined : this.deps.tree.read(this.parentOf(pod));
  }

  /** UIDs of all pods that have a cgroup, whether anybody knows them or not. */
  uids(): readonly string[] {
    if (this.options.perQos === false) return [];
    const { tree } = this.deps;
    const names = Object.values(classCgroups(this.options)).flatMap((path) => tree.childrenOf(path));
    return [...new Set(names.map(uidOfCgroup).filter((uid) => uid !== undefined))];
  }

  /**
   * Removes the pod's cgroup in every hierarchy; succeeds when there is none. Called when the runtime has stopped all
   * that it knows of: what still runs there is what it forgot, and is killed, as in Kubernetes.
   */
  async remove(uid: string): Promise<void> {
    const { host, log, tree } = this.deps;
    if (this.options.perQos === false) return;
    for (const path of podCgroups(uid, this.options)) {
      this.limits.invalidate(path);
      const processes = this.deps.endProcesses(path);
      if (processes > 0) log.warn("Killed remaining processes in pod cgroup", { uid, processes });
      await tree.forget(path);
      await host.removeCgroup(path);
    }
    if (!this.pods.delete(uid)) return;
    await this.roots.follow(this.options.rules(), [...this.pods.values()]).catch((error: unknown) => {
      log.warn("Failed to enforce node allocatable limits", { error: messageOf(error) });
    });
  }
}
