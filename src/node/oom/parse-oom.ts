/** A process that the kernel killed because memory ran out. */
export interface OomKill {
  /** True if the whole machine was out of memory, false if a cgroup reached its limit. */
  readonly isSystem: boolean;
  /** The cgroup of the process; empty if the kernel does not report it. */
  readonly cgroup: string;
  readonly process: string;
  readonly pid: number;
}

/** A summary of each kill, from Linux 5.0 on. A process may have any name: the first `task=` is the kernel's own. */
const SUMMARY =
  /^oom-kill:constraint=\w+,.*?(?:oom_memcg=.*|(global_oom)),task_memcg=(.*?),task=(.*),pid=(\d+),uid=\d+$/;
/** What older kernels print for each kill, and newer ones besides the summary. */
const KILLED = /^(Memory cgroup out of memory|Out of memory.*?): Kill(?:ed)? process (\d+) \((.*?)\)[, ]/;

/**
 * Finds kills in the kernel's messages. Kernels that print a summary print further lines for the same kill, and with
 * `memory.oom.group` one for each process of the group: what follows a summary belongs to it.
 */
export class OomParser {
  private hasSummaries = false;

  /** The kill that the message reports; undefined for others. */
  parse(text: string): OomKill | undefined {
    const summary = SUMMARY.exec(text);
    if (summary !== null) {
      this.hasSummaries = true;
      const [, global, cgroup = "", process = "", pid = ""] = summary;
      return { isSystem: global !== undefined, cgroup, process, pid: Number(pid) };
    }
    const killed = this.hasSummaries ? null : KILLED.exec(text);
    if (killed === null) return undefined;
    const [, kind = "", pid = "", process = ""] = killed;
    return { isSystem: !kind.startsWith("Memory cgroup"), cgroup: "", process, pid: Number(pid) };
  }
}
