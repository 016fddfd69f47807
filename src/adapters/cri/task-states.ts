import type { ContainerStatus, ContainerSummary, SandboxSummary } from "../runtime/port.ts";

interface Exit {
  readonly exitCode: number;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

/** Far more exits than can be under way at once; past it the oldest are dropped, and CRI's own answer counts again. */
const MAX_ENTRIES = 4096;

/**
 * Where containerd's tasks are ahead of its CRI plug-in: starts of this process that are not answered yet, and exits
 * and OOM kills that containerd's events have reported. The plug-in updates its own state only after it has deleted
 * the task (30 to 90 ms later); until then an answer `running` is corrected to `exited`, in the words that the plug-in
 * will use itself, and marked as provisional. A container never runs again under the same id.
 */
export class TaskStates {
  private readonly exits = new Map<string, Exit>();
  private readonly outOfMemory = new Set<string>();
  private readonly starts = new Map<string, Promise<void>>();

  /** Follows a start to its end, and passes its outcome on. */
  async followStart(id: string, start: Promise<unknown>): Promise<void> {
    const settled = start.then(
      () => undefined,
      () => undefined,
    );
    this.starts.set(id, settled);
    try {
      await start;
    } finally {
      this.starts.delete(id);
    }
  }

  /** Resolves when the start under way has ended, successfully or not; undefined when there is none. */
  startOf(id: string): Promise<void> | undefined {
    return this.starts.get(id);
  }

  /** Records an exit; false when it was known. */
  exited(id: string, exit: Exit): boolean {
    if (this.exits.has(id)) return false;
    bounded(this.exits);
    this.exits.set(id, exit);
    return true;
  }

  /** Records that a process of the container was killed for its memory. */
  killedForMemory(id: string): void {
    bounded(this.outOfMemory);
    this.outOfMemory.add(id);
  }

  /** CRI itself knows of the exit from here on. */
  settled(id: string): void {
    this.exits.delete(id);
  }

  /** The container is removed. */
  removed(id: string): void {
    this.exits.delete(id);
    this.outOfMemory.delete(id);
  }

  /** After a new connection only the runtime's own answers count. */
  clear(): void {
    this.exits.clear();
    this.outOfMemory.clear();
  }

  /** The status with what is known ahead of CRI. */
  status(status: ContainerStatus): ContainerStatus {
    const exit = this.pending(status);
    if (exit === undefined) return this.withReason(status);
    const { exitCode, at } = exit;
    const reason = status.reason === "OOMKilled" ? status.reason : exitCode === 0 ? "Completed" : "Error";
    return this.withReason({ ...status, state: "exited", exitCode, finishedAt: at, reason, isProvisional: true });
  }

  summary(summary: ContainerSummary): ContainerSummary {
    return this.pending(summary) === undefined ? summary : { ...summary, state: "exited" };
  }

  sandbox<T extends SandboxSummary>(sandbox: T): T {
    return sandbox.state === "ready" && this.exits.has(sandbox.id) ? { ...sandbox, state: "notReady" } : sandbox;
  }

  /** The plug-in may report the exit before it has heard of the OOM kill that caused it. */
  private withReason(status: ContainerStatus): ContainerStatus {
    const isOutOfMemory = status.state === "exited" && status.reason === "Error" && this.outOfMemory.has(status.id);
    return isOutOfMemory ? { ...status, reason: "OOMKilled" } : status;
  }

  /** The exit that CRI does not know yet, if there is one. */
  private pending({ id, state }: { id: string; state: string }): Exit | undefined {
    return state === "running" ? this.exits.get(id) : undefined;
  }
}

/** Drops the oldest entry when there is no room for another. */
function bounded(entries: Map<string, unknown> | Set<string>): void {
  if (entries.size < MAX_ENTRIES) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
