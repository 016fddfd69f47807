import type { Abortable } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Wakes } from "../lib/wakes.ts";
import { formatCpuSet } from "../model/cpu-set.ts";
import type { CpuState } from "./cpu/cpu-state.ts";

/** A container that runs. */
export interface RunningContainer {
  readonly id: string;
  readonly uid: string;
  readonly name: string;
}

interface CpuSetsDeps {
  readonly state: CpuState;
  /** Woken when the shared pool has changed. */
  readonly wakes: Wakes;
  readonly log: Pick<Logger, "warn">;
  /** Containers of pods of this agent, also of those that were removed and still end. */
  running(): Iterable<RunningContainer>;
  /** Releases what pods have that are neither wanted nor running. */
  releaseStale(): void;
  updateCpus(id: string, cpus: string, options: Abortable): Promise<void>;
}

/**
 * Keeps the CPU sets of running containers in line with the state: at each change of the shared pool, and once a period
 * as in Kubernetes, for what could not be updated before.
 */
export class CpuSets {
  /** The CPU set that each container was created with or got since, by its id. */
  private applied = new Map<string, string>();

  constructor(
    private readonly deps: CpuSetsDeps,
    private readonly periodMs: Live<number>,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const { wakes } = this.deps;
    this.periodMs.onChange(() => wakes.wake(), { signal });
    while (!signal.aborted) {
      wakes.clear();
      this.deps.releaseStale();
      await this.reconcile({ signal });
      await wakes.sleep(this.periodMs.current, signal);
    }
  }

  /** Updates the containers whose CPU set is another one. A failure is logged, and tried again at the next pass. */
  async reconcile({ signal }: Abortable): Promise<void> {
    const seen = new Map<string, string>();
    for (const { id, uid, name } of [...this.deps.running()]) {
      if (signal.aborted) return;
      const cpus = formatCpuSet(this.deps.state.exclusive(uid, name) ?? this.deps.state.shared);
      const before = this.applied.get(id);
      if (cpus === "" || before === cpus) {
        if (before !== undefined) seen.set(id, before);
        continue;
      }
      try {
        await this.deps.updateCpus(id, cpus, { signal });
        seen.set(id, cpus);
      } catch (error) {
        if (signal.aborted) return;
        this.deps.log.warn("Failed to update CPU set of container", {
          podUID: uid,
          container: name,
          containerID: id,
          cpus,
          error: messageOf(error),
        });
      }
    }
    this.applied = seen;
  }
}
