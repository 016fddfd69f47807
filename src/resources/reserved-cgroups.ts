import type { Logger } from "../lib/log.ts";
import type { CgroupValues } from "../model/pod-cgroup-values.ts";
import { type LimitedTree, LimitWriter } from "./limit-writer.ts";

/** A reservation that is enforced on a cgroup of the host. */
export interface ReservedRule {
  readonly of: "system" | "kube";
  /** Only its cpu share is set. */
  readonly isCompressible: boolean;
  /** As it is configured, for messages. */
  readonly name: string;
  /** Below the mount of a hierarchy. */
  readonly path: string;
  readonly values: CgroupValues;
}

export interface ReservedCgroupsDeps {
  readonly tree: LimitedTree & { exists(path: string): boolean; read(path: string): CgroupValues | undefined };
  readonly log: Pick<Logger, "warn">;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** What a cgroup gets back when its reservation is no longer enforced: the defaults of the kernel. */
const LIFTED: CgroupValues = { cpuShares: 1024, memoryLimit: -1, pids: -1 };

/**
 * Enforces reservations for the host's daemons on cgroups that the administrator made (`systemReservedCgroup`,
 * `kubeReservedCgroup`). One that is missing is an event and is tried again at the next refresh; the agent runs without.
 */
export class ReservedCgroups {
  private readonly limits: LimitWriter;
  /** The outcome by rule, of which an event was recorded. */
  private readonly outcomes = new Map<string, string>();
  private enforced = new Map<string, ReservedRule>();
  /** What the kernel reported after it was set, by path: somebody else may change it. */
  private readonly confirmed = new Map<string, string>();

  constructor(
    private readonly deps: ReservedCgroupsDeps,
    private readonly rules: () => readonly ReservedRule[],
  ) {
    this.limits = new LimitWriter(deps.tree, deps.log);
  }

  /** Sets the limits if they or the configuration changed. Never rejects. */
  async refresh(): Promise<void> {
    const rules = new Map(this.rules().map((rule) => [rule.path, rule]));
    for (const [path] of [...this.enforced].filter(([known]) => !rules.has(known))) {
      if (this.deps.tree.exists(path)) await this.limits.set(path, LIFTED);
    }
    this.enforced = rules;
    for (const rule of rules.values()) this.record(rule, await this.enforce(rule));
  }

  /** Undefined if nothing was to be done. */
  private async enforce({ path, values }: ReservedRule): Promise<readonly string[] | undefined> {
    const { tree } = this.deps;
    if (!tree.exists(path)) return [`cgroup ${path} does not exist`];
    const now = (): string => JSON.stringify(tree.read(path));
    if (now() !== this.confirmed.get(path)) this.limits.invalidate(path);
    const problems = await this.limits.setShared(path, values);
    // What the kernel refused is tried again at the next refresh.
    if (problems?.length === 0) this.confirmed.set(path, now());
    else if (problems !== undefined) this.confirmed.delete(path);
    return problems;
  }

  private record({ of, isCompressible, name }: ReservedRule, problems: readonly string[] | undefined): void {
    if (problems === undefined) return;
    const isSystem = of === "system";
    const kind = `${isSystem ? "System" : "Kube"} Reserved${isCompressible ? " Compressible" : ""}`;
    const isDone = problems.length === 0;
    const message = isDone
      ? `Updated limits on ${of} reserved cgroup ${name}`
      : `Failed to enforce ${kind} Cgroup Limits on "${name}": ${problems.join("; ")}`;
    if (this.outcomes.get(name) === message) return;
    this.outcomes.set(name, message);
    if (isDone) return this.deps.event("Normal", "NodeAllocatableEnforced", message);
    this.deps.log.warn("Failed to enforce reservation, its daemons run without limits", {
      cgroup: name,
      problems: problems.join("; "),
    });
    this.deps.event("Warning", "FailedNodeAllocatableEnforcement", message);
  }
}
