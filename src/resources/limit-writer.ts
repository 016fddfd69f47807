import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { CgroupValues } from "../model/pod-cgroup-values.ts";

/** The part of the cgroup tree that limits are written to. */
export interface LimitedTree {
  /** Returns what the kernel refused. */
  set(path: string, values: CgroupValues): Promise<readonly string[]>;
  /** Bytes in use that the kernel cannot reclaim; undefined if the cgroup is not there. */
  unreclaimable(path: string): number | undefined;
}

/** Writes limits of cgroups. The same values are written once, and each kind of refusal is warned of once. */
export class LimitWriter {
  /** What was last set, by path. */
  private readonly written = new Map<string, string>();
  private readonly warned = new Set<string>();

  constructor(
    private readonly tree: LimitedTree,
    private readonly log: Pick<Logger, "warn">,
  ) {}

  /** What was set last; empty if nothing was. */
  valuesOf(path: string): CgroupValues {
    const text = this.written.get(path);
    return text === undefined ? {} : (JSON.parse(text) as CgroupValues); // reason: written here from such values
  }

  isWritten(path: string, values: CgroupValues): boolean {
    return this.written.get(path) === JSON.stringify(values);
  }

  /** The next values are written even if they are the same. */
  invalidate(path: string): void {
    this.written.delete(path);
  }

  /** Sets the values and returns what the kernel refused; undefined if they were set before. */
  async set(path: string, values: CgroupValues): Promise<readonly string[] | undefined> {
    if (this.isWritten(path, values)) return undefined;
    this.written.set(path, JSON.stringify(values));
    const problems = await this.tree.set(path, values).catch((error: unknown) => [messageOf(error)]);
    for (const problem of problems) this.warn(path, problem);
    return problems;
  }

  /**
   * Sets the values of a cgroup that holds several pods or the host's daemons. A memory limit below what is in use and
   * cannot be reclaimed is left out and reported: with cgroup v2 the kernel would kill processes until it fits.
   */
  async setShared(path: string, values: CgroupValues): Promise<readonly string[] | undefined> {
    if (this.isWritten(path, values)) return undefined;
    const { memoryLimit, ...rest } = values;
    const used = memoryLimit === undefined || memoryLimit < 0 ? undefined : this.tree.unreclaimable(path);
    if (memoryLimit === undefined || used === undefined || used <= memoryLimit) return this.set(path, values);
    const problem = `memory limit ${memoryLimit}: ${used} bytes are in use and cannot be reclaimed`;
    this.warn(path, problem);
    return [problem, ...((await this.set(path, rest)) ?? [])];
  }

  /** A kernel without a controller refuses the same for every pod. */
  private warn(cgroup: string, problem: string): void {
    const kind = problem.split(":")[0] ?? "";
    if (this.warned.has(kind)) return;
    this.warned.add(kind);
    this.log.warn("Failed to set cgroup limit, processes run without it", { cgroup, problem });
  }
}
