import type { ContainerStatus, ContainerSummary, SandboxSummary } from "../runtime/port.ts";

interface Exit {
  readonly exitCode: number;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

/** Far more exits than can be under way at once; past it the oldest are forgotten, and CRI's own word counts again. */
const MOST_KEPT = 4096;

/**
 * Exits that containerd's events told and its CRI plug-in does not know yet. The plug-in updates its own state only
 * after it has deleted the task (30 to 90 ms later); with what the event said, an answer `running` becomes `exited`
 * at once, in the words that the plug-in will use itself. A container never runs again under the same id.
 */
export class KnownExits {
  private readonly exits = new Map<string, Exit>();
  private readonly outOfMemory = new Set<string>();

  /** False when this exit was known. */
  add(id: string, exit: Exit): boolean {
    if (this.exits.has(id)) return false;
    bounded(this.exits);
    this.exits.set(id, exit);
    return true;
  }

  addOutOfMemory(id: string): void {
    bounded(this.outOfMemory);
    this.outOfMemory.add(id);
  }

  forget(id: string): void {
    this.exits.delete(id);
    this.outOfMemory.delete(id);
  }

  /** After a new connection the runtime's own word counts. */
  clear(): void {
    this.exits.clear();
    this.outOfMemory.clear();
  }

  status(status: ContainerStatus): ContainerStatus {
    const exit = this.pending(status);
    if (exit === undefined) return status;
    const isOutOfMemory = this.outOfMemory.has(status.id) || status.reason === "OOMKilled";
    const failed = isOutOfMemory ? "OOMKilled" : "Error";
    const reason = exit.exitCode === 0 ? "Completed" : failed;
    return { ...status, state: "exited", exitCode: exit.exitCode, finishedAt: exit.at, reason };
  }

  summary(summary: ContainerSummary): ContainerSummary {
    return this.pending(summary) === undefined ? summary : { ...summary, state: "exited" };
  }

  sandbox<T extends SandboxSummary>(sandbox: T): T {
    return sandbox.state === "ready" && this.exits.has(sandbox.id) ? { ...sandbox, state: "notReady" } : sandbox;
  }

  /** The exit that CRI does not know yet, if there is one. */
  private pending({ id, state }: { id: string; state: string }): Exit | undefined {
    return state === "running" ? this.exits.get(id) : undefined;
  }
}

/** Drops the oldest entry when there is no room for another. */
function bounded(entries: Map<string, unknown> | Set<string>): void {
  if (entries.size < MOST_KEPT) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
