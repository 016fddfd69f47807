import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import {
  type CgroupRules,
  type CgroupValues,
  classCgroupValues,
  largerValues,
  nodeCgroupValues,
  podCgroupValues,
} from "../model/pod-cgroup-values.ts";
import { qosClass } from "../model/qos.ts";
import type { ResourceAmounts } from "../model/resources.ts";
import { type CgroupOptions, classCgroups, podCgroup, podCgroups } from "./cgroup-names.ts";

/** The machine's cgroups, as `adapters/cgroup` has them. */
export interface CgroupHost {
  ensure(path: string): Promise<void>;
  /** Answers what the kernel refused. */
  set(path: string, values: CgroupValues): Promise<readonly string[]>;
  exists(path: string): boolean;
  read(path: string): CgroupValues | undefined;
  forget(path: string): Promise<void>;
  /** Bytes used by the cgroup below `path` that carries the container's id in its name. */
  memoryUsage(path: string, containerId: string): number | undefined;
}

export interface CgroupDeps {
  readonly host: { removeCgroup(path: string): Promise<void> };
  readonly tree: CgroupHost;
  readonly log: Pick<Logger, "warn">;
  /** Kills whatever is in a cgroup or below it; returns how many processes that were. */
  endProcesses(path: string): number;
  /** Records an event about the node. */
  event?(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** What the limits follow from. */
export interface LimitRules extends CgroupRules {
  /** What all pods together may use; undefined values are not limited. */
  readonly node: { readonly allocatable: ResourceAmounts; readonly pids: number | undefined };
}

/**
 * The tree `kubepods / class / pod` with its limits. A kernel that refuses a limit is warned of once, and the pod runs
 * without it; one that refuses the cgroup itself is an error.
 */
export class PodCgroups {
  /** What was last set, by path: the same is not written again. */
  private readonly written = new Map<string, string>();
  /** What the kernel said of a class after it was set, by path. */
  private readonly confirmed = new Map<string, string>();
  private readonly pods = new Map<string, Pod>();
  private readonly warned = new Set<string>();
  private roots: Promise<void> | undefined;
  /** The outcome of enforcing the node's limits, of which an event was recorded. */
  private enforced: "yes" | "no" | undefined;

  constructor(
    private readonly deps: CgroupDeps,
    private readonly options: CgroupOptions & { rules(): LimitRules },
  ) {}

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
    await this.ensureRoots(rules);
    const path = this.parentOf(pod);
    const wanted = podCgroupValues(pod, rules);
    const values = options.growOnly === true ? largerValues(this.valuesOf(path), wanted) : wanted;
    if (this.written.get(path) !== JSON.stringify(values) || !this.deps.tree.exists(path)) {
      this.written.delete(path);
      await this.deps.tree.ensure(path);
      await this.set(path, values);
    }
    const before = this.pods.get(pod.metadata.uid ?? "");
    this.pods.set(pod.metadata.uid ?? "", pod);
    if (before !== pod) await this.refreshClasses();
  }

  /** Whether the pod's cgroup is there; true where pods have none of their own. */
  exists(pod: Pod): boolean {
    return this.options.perQos === false || this.deps.tree.exists(this.parentOf(pod));
  }

  /**
   * Sets the shares and limits of the classes and of all pods together again if somebody changed them: a safety net
   * beside what is set when pods come and go. Never rejects; does nothing before the first pod.
   */
  async refresh(): Promise<void> {
    if (this.options.perQos === false || this.roots === undefined) return;
    const { all, burstable, bestEffort } = classCgroups(this.options);
    const now = (path: string): string => JSON.stringify(this.deps.tree.read(path) ?? null);
    const changed = [all, burstable, bestEffort].filter((path) => now(path) !== this.confirmed.get(path));
    for (const path of changed) this.written.delete(path);
    try {
      if (changed.some((path) => !this.deps.tree.exists(path))) this.roots = undefined;
      await this.ensureRoots(this.options.rules());
      await this.set(bestEffort, classCgroupValues([]));
      await this.refreshClasses();
      for (const path of changed) this.confirmed.set(path, now(path));
    } catch (error) {
      this.deps.log.warn("Failed to enforce node allocatable limits", { error: messageOf(error) });
    }
  }

  /** Bytes of memory that a container of the pod uses now. */
  memoryUsage(pod: Pod, containerId: string): number | undefined {
    return this.options.perQos === false ? undefined : this.deps.tree.memoryUsage(this.parentOf(pod), containerId);
  }

  private valuesOf(path: string): CgroupValues {
    const text = this.written.get(path);
    return text === undefined ? {} : (JSON.parse(text) as CgroupValues); // reason: written here from such values
  }

  /** What the kernel has for the pod now. */
  read(pod: Pod): CgroupValues | undefined {
    return this.options.perQos === false ? undefined : this.deps.tree.read(this.parentOf(pod));
  }

  /**
   * Removes the pod's cgroup in every hierarchy; succeeds when there is none. Called when the runtime has stopped all
   * that it knows of: what still runs there is what it forgot, and is killed, as in Kubernetes.
   */
  async remove(uid: string): Promise<void> {
    const { host, log, tree } = this.deps;
    if (this.options.perQos === false) return;
    for (const path of podCgroups(uid, this.options)) {
      this.written.delete(path);
      const processes = this.deps.endProcesses(path);
      if (processes > 0) log.warn("Killed remaining processes in pod cgroup", { uid, processes });
      await tree.forget(path);
      await host.removeCgroup(path);
    }
    if (this.pods.delete(uid)) await this.refreshClasses();
  }

  /** Made once (a failure is tried again with the next pod); what all may use follows the configuration. */
  private async ensureRoots({ node, hugepageSizes }: LimitRules): Promise<void> {
    this.roots ??= this.makeRoots().catch((error: unknown) => {
      this.roots = undefined;
      throw error;
    });
    await this.roots;
    const values = nodeCgroupValues(node.allocatable, { pids: node.pids, hugepageSizes });
    const { all } = classCgroups(this.options);
    this.recordEnforcement(all, await this.set(all, values));
  }

  /** An event for the first success and the first failure, in the words of Kubernetes. */
  private recordEnforcement(path: string, problems: readonly string[] | undefined): void {
    if (problems === undefined) return;
    const outcome = problems.length === 0 ? "yes" : "no";
    if (this.enforced === outcome || this.enforced === "yes") return;
    this.enforced = outcome;
    if (outcome === "yes")
      this.deps.event?.("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
    else {
      const message = `Failed to update Node Allocatable Limits "${path}": ${problems.join("; ")}`;
      this.deps.event?.("Warning", "FailedNodeAllocatableEnforcement", message);
    }
  }

  private async makeRoots(): Promise<void> {
    const { all, burstable, bestEffort } = classCgroups(this.options);
    for (const path of [all, burstable, bestEffort]) await this.deps.tree.ensure(path);
    await this.set(bestEffort, classCgroupValues([]));
  }

  /** The share of the burstable class is the sum of what its pods ask for. */
  private async refreshClasses(): Promise<void> {
    const burstable = [...this.pods.values()].filter((pod) => qosClass(pod) === "Burstable");
    await this.set(classCgroups(this.options).burstable, classCgroupValues(burstable));
  }

  /** Sets the values and returns what the kernel refused; undefined if they were set before. */
  private async set(path: string, values: CgroupValues): Promise<readonly string[] | undefined> {
    const text = JSON.stringify(values);
    if (this.written.get(path) === text) return undefined;
    this.written.set(path, text);
    const problems = await this.deps.tree.set(path, values).catch((error: unknown) => [messageOf(error)]);
    for (const problem of problems) {
      // A kernel without a controller says the same for every pod.
      const kind = problem.split(":")[0] ?? "";
      if (this.warned.has(kind)) continue;
      this.warned.add(kind);
      this.deps.log.warn("Failed to set cgroup limit, pods run without it", { cgroup: path, problem });
    }
    return problems;
  }
}
