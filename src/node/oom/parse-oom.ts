/** A process that the kernel killed because memory ran out. */
export interface OomKill {
  /** True if the whole machine was out of memory, false if a cgroup reached its limit. */
  readonly isSystem: boolean;
  /** The cgroup of the process; empty if the kernel does not report it. */
  readonly cgroup: string;
  readonly process: string;
  readonly pid: number;
}

/** How the summary of a kill begins and ends, from Linux 5.0 on. */
const SUMMARY = "oom-kill:constraint=";
const PROCESS = /,pid=(\d+),uid=\d+$/;
const CGROUP_FIELD = ",task_memcg=";
const NAME_FIELD = ",task=";
/** Characters of the longest message that is looked at; the kernel cuts them far below. */
const MOST_CHARACTERS = 4096;
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
    const summary = parseSummary(text);
    if (summary !== undefined) {
      this.hasSummaries = true;
      return summary;
    }
    const killed = this.hasSummaries || text.length > MOST_CHARACTERS ? null : KILLED.exec(text);
    if (killed === null) return undefined;
    const [, kind = "", pid = "", process = ""] = killed;
    return { isSystem: !kind.startsWith("Memory cgroup"), cgroup: "", process, pid: Number(pid) };
  }
}

/**
 * Reads `oom-kill:constraint=…,(oom_memcg=…|global_oom),task_memcg=…,task=…,pid=…,uid=…`. Names of cgroups and processes
 * may look like fields: the cgroup of the process is the last one that a name follows, and the name is all behind it.
 * Without one pattern for all of it, which would take minutes for a name made of such fields.
 */
function parseSummary(text: string): OomKill | undefined {
  const end = text.startsWith(SUMMARY) && text.length <= MOST_CHARACTERS ? PROCESS.exec(text) : null;
  if (end === null) return undefined;
  const head = text.slice(0, end.index);
  const last = head.lastIndexOf(CGROUP_FIELD);
  const at = head.includes(NAME_FIELD, last) ? last : head.lastIndexOf(CGROUP_FIELD, last - 1);
  const name = head.indexOf(NAME_FIELD, at);
  if (at < 0 || name < 0) return undefined;
  const where = head.slice(0, at);
  return {
    isSystem: where.endsWith(",global_oom") && !where.includes(",oom_memcg="),
    cgroup: head.slice(at + CGROUP_FIELD.length, name),
    process: head.slice(name + NAME_FIELD.length),
    pid: Number(end[1]),
  };
}
