import { type Abortable, isAborted } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { DesiredPods } from "./desired.ts";
import type { ExecuteDeps } from "./execute/context.ts";
import { removeRemains } from "./execute/remove.ts";
import type { WorkerPool } from "./worker/pool.ts";

export interface OrphanSweeperDeps {
  readonly log: Logger;
  readonly desired: DesiredPods;
  readonly pool: Pick<WorkerPool, "worker">;
  readonly execute: Parameters<typeof removeRemains>[0] &
    Pick<ExecuteDeps, "files"> & { readonly cgroups: Pick<ExecuteDeps["cgroups"], "uids"> };
  readonly volumes: {
    /** Removes the volumes and directories of pods that are not known; returns the UIDs that are left. */
    removeOrphans(
      isKnown: (uid: string) => boolean,
      options: Abortable & { rest(uid: string): Promise<void> },
    ): Promise<readonly string[]>;
  };
}

/** Removes the directories of orphaned pods: those that neither a source nor the runtime lists. */
export class OrphanSweeper {
  /** No directory of an orphaned pod is left. */
  private isSwept = false;

  constructor(
    private readonly deps: OrphanSweeperDeps,
    private readonly signal: AbortSignal,
  ) {}

  /** Sweeps once all sources and the runtime have listed their pods; what is left is tried at the next call. */
  sweep(inRuntime: ReadonlySet<string> | undefined): void {
    const { desired, log } = this.deps;
    if (this.isSwept || inRuntime === undefined || !desired.isComplete) return;
    this.isSwept = true;
    this.removeAll(inRuntime).then(
      (left) => {
        this.isSwept = left.length === 0;
      },
      (error: unknown) => {
        if (!isAborted(error, this.signal)) log.error("Failed to remove directories of orphaned pods", error);
        this.isSwept = false;
      },
    );
  }

  private async removeAll(inRuntime: ReadonlySet<string>): Promise<readonly string[]> {
    const { desired, pool, volumes, execute } = this.deps;
    const isKnown = (uid: string): boolean =>
      inRuntime.has(uid) || desired.get(uid) !== undefined || pool.worker(uid) !== undefined;
    const rest = (uid: string): Promise<void> => removeRemains(execute, uid);
    const left = await volumes.removeOrphans(isKnown, { signal: this.signal, rest });
    await this.removeCgroups(isKnown);
    return left;
  }

  /** Cgroups of pods without a directory: an agent that was killed left them, or its state was removed. */
  private async removeCgroups(isKnown: (uid: string) => boolean): Promise<void> {
    const { execute, log } = this.deps;
    // On a shared runtime they may belong to another agent.
    if (execute.node.owner !== undefined) return;
    for (const podUID of execute.cgroups.uids().filter((uid) => !isKnown(uid))) {
      log.info("Removing cgroup of orphaned pod", { podUID });
      await execute.cgroups.remove(podUID).catch((error: unknown) => {
        log.warn("Failed to remove cgroup of orphaned pod", { podUID, error: messageOf(error) });
      });
    }
  }
}
