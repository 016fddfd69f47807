import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import type { CgroupValues } from "../model/pod-cgroup-values.ts";
import { type CgroupOptions, classCgroups } from "./cgroup-names.ts";
import { classValues, type LimitRules, nodeValues } from "./class-values.ts";
import type { LimitedTree, LimitWriter } from "./limit-writer.ts";

export interface RootCgroupsDeps {
  readonly tree: LimitedTree & {
    ensure(path: string): Promise<void>;
    exists(path: string): boolean;
    read(path: string): CgroupValues | undefined;
  };
  readonly limits: LimitWriter;
  readonly log: Pick<Logger, "warn">;
  /** Records an event about the node. */
  event?(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** The cgroups above those of pods: all pods together (`kubepods`), and the classes burstable and best effort. */
export class RootCgroups {
  private made: Promise<void> | undefined;
  /** What the kernel reported after it was set, by path. */
  private readonly confirmed = new Map<string, string>();
  /** The outcome of enforcing the node's limits, of which an event was recorded. */
  private enforced: "yes" | "no" | undefined;
  /** False right after a start: what depends on the pods is left as the last agent set it. */
  private knowsPods = false;
  private memoryMin: number | undefined;
  /** Why the last refresh failed. */
  private problem: string | undefined;
  private readonly paths: ReturnType<typeof classCgroups>;

  constructor(
    private readonly deps: RootCgroupsDeps,
    options: CgroupOptions,
  ) {
    this.paths = classCgroups(options);
  }

  /** Makes them once (a failure is tried again with the next call); the node's limits follow the configuration. */
  async ensure(rules: LimitRules): Promise<void> {
    this.made ??= this.make().catch((error: unknown) => {
      this.made = undefined;
      throw error;
    });
    await this.made;
    const { memoryMin } = this;
    await this.setNode({ ...nodeValues(rules), ...(memoryMin !== undefined && { memoryMin }) });
  }

  /** Sets what depends on the pods. */
  async follow(rules: LimitRules, pods: readonly Pod[]): Promise<void> {
    this.knowsPods = true;
    const { all, ...classes } = classValues(pods, rules);
    this.memoryMin = all.memoryMin;
    await this.setNode(all);
    for (const name of ["burstable", "bestEffort"] as const) {
      const path = this.paths[name];
      await this.deps.limits.set(path, this.aboveUsage(path, classes[name]));
    }
  }

  /** Sets again what somebody else changed. Never rejects. */
  async refresh(rules: LimitRules, pods: readonly Pod[]): Promise<void> {
    const { limits, tree, log } = this.deps;
    const paths = Object.values(this.paths);
    const now = (path: string): string => JSON.stringify(tree.read(path) ?? null);
    const changed = paths.filter((path) => now(path) !== this.confirmed.get(path));
    for (const path of changed) limits.invalidate(path);
    if (this.enforced === "no") limits.invalidate(this.paths.all);
    try {
      if (changed.some((path) => !tree.exists(path))) this.made = undefined;
      await this.ensure(rules);
      if (this.knowsPods) await this.follow(rules, pods);
      for (const path of changed) this.confirmed.set(path, now(path));
      this.knowsPods = true;
      this.problem = undefined;
    } catch (error) {
      // The same is not logged each minute.
      const problem = messageOf(error);
      if (problem !== this.problem) log.warn("Failed to enforce node allocatable limits", { error: problem });
      this.problem = problem;
    }
  }

  private async make(): Promise<void> {
    for (const path of Object.values(this.paths)) await this.deps.tree.ensure(path);
  }

  private async setNode(values: CgroupValues): Promise<void> {
    const problems = await this.deps.limits.setShared(this.paths.all, values);
    if (problems !== undefined) this.recordEnforcement(problems);
  }

  /** A class that already uses more than its limit gets what it uses, and cannot grow, as in Kubernetes. */
  private aboveUsage(path: string, values: CgroupValues): CgroupValues {
    const { memoryLimit } = values;
    if (memoryLimit === undefined || memoryLimit < 0 || this.deps.limits.isWritten(path, values)) return values;
    return { ...values, memoryLimit: Math.max(memoryLimit, this.deps.tree.unreclaimable(path) ?? 0) };
  }

  /** Records an event for each change of the outcome, in the words of Kubernetes. */
  private recordEnforcement(problems: readonly string[]): void {
    const outcome = problems.length === 0 ? "yes" : "no";
    if (this.enforced === outcome) return;
    this.enforced = outcome;
    if (outcome === "yes")
      this.deps.event?.("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
    else {
      const message = `Failed to update Node Allocatable Limits "${this.paths.all}": ${problems.join("; ")}`;
      this.deps.event?.("Warning", "FailedNodeAllocatableEnforcement", message);
    }
  }
}
