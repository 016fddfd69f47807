import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** The processes of the machine and their cgroups, as `adapters/cgroup` has them. */
export interface ProcessHost {
  readonly ownPid: number;
  /** False if the agent runs in a PID namespace of its own, as in a container; undefined if that cannot be read. */
  sharesInitNamespace(): boolean | undefined;
  /** True if the process is in the cgroup, in every hierarchy. */
  isIn(pid: number, path: string): boolean;
  /** Creates the cgroup where it is missing, and moves the process into it, in every hierarchy. */
  move(pid: number, path: string): void;
  /** Processes of the root cgroup, without kernel threads and the first process. */
  rootProcesses(): readonly number[];
}

/** How often the root cgroup is listed before processes that appear meanwhile are left for the next refresh. */
const ROUNDS = 11;

/** Keeps the agent in `kubeletCgroups`, and the host's processes that are in no cgroup in `systemCgroups`. */
export class ProcessCgroups {
  /** The last problem by cgroup: the same is not logged each minute. */
  private readonly problems = new Map<string, string>();

  constructor(
    private readonly deps: { readonly host: ProcessHost; readonly log: Pick<Logger, "warn" | "info"> },
    private readonly options: { readonly kubeletCgroups: string; readonly systemCgroups: string },
  ) {}

  /** Never rejects. */
  refresh(): Promise<void> {
    const { kubeletCgroups, systemCgroups } = this.options;
    if (systemCgroups !== "") this.attempt(systemCgroups, () => this.moveOthers(absolute(systemCgroups)));
    if (kubeletCgroups !== "") this.attempt(kubeletCgroups, () => this.moveSelf(absolute(kubeletCgroups)));
    return Promise.resolve();
  }

  private moveSelf(path: string): void {
    const { host, log } = this.deps;
    if (host.isIn(host.ownPid, path)) return;
    // As in Kubernetes: an agent in a container stays where its runtime put it.
    const shares = host.sharesInitNamespace();
    if (shares !== true)
      throw new Error(shares === false ? "the agent runs in a container" : "read PID namespace of init");
    host.move(host.ownPid, path);
    log.info("Moved the agent to its cgroup", { cgroup: path });
  }

  private moveOthers(path: string): void {
    const { host } = this.deps;
    let failure: unknown;
    for (let round = 0; round < ROUNDS; round++) {
      const pids = host.rootProcesses();
      failure = undefined;
      if (pids.length === 0) return;
      for (const pid of pids) {
        try {
          host.move(pid, path);
        } catch (error) {
          failure = error;
        }
      }
      if (failure !== undefined) break;
    }
    if (failure !== undefined) throw failure;
  }

  private attempt(cgroup: string, work: () => void): void {
    try {
      work();
      this.problems.delete(cgroup);
    } catch (error) {
      const problem = messageOf(error);
      if (this.problems.get(cgroup) === problem) return;
      this.problems.set(cgroup, problem);
      this.deps.log.warn("Failed to move processes to cgroup", { cgroup, error: problem });
    }
  }
}

function absolute(name: string): string {
  return `/${name
    .split("/")
    .filter((part) => part !== "")
    .join("/")}`;
}
