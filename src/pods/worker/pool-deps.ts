import type { Clock } from "../../lib/clock.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { AdmissionNode } from "../admission/admission.ts";
import type { Allocator } from "../admission/allocations.ts";
import type { DesiredPods } from "../desired.ts";
import type { ExecuteDeps } from "../execute/context.ts";
import type { Journal } from "../journal.ts";
import type { Observer } from "../observe/observe.ts";
import type { CrashLimits } from "../plan/crash-backoff.ts";
import type { DeadLimits } from "../plan/prune.ts";
import type { PodProbes } from "./probes.ts";
import type { WorkerDeps } from "./worker.ts";

export interface PoolOptions {
  readonly maxConcurrentStarts: Live<number>;
  /** The node, as admission sees it now. */
  node(): AdmissionNode;
  readonly crashLimits: CrashLimits;
  /** How many terminated containers are kept. */
  readonly deadLimits?: Live<DeadLimits>;
  /** True for an orphaned pod that this agent may stop. */
  ownsOrphan(pod: { annotations: Readonly<Record<string, string>> }): boolean;
}

export interface PoolDeps {
  readonly execute: ExecuteDeps;
  readonly observer: Pick<Observer, "read" | "evict">;
  readonly desired: DesiredPods;
  readonly probes: PodProbes;
  readonly journal: Journal;
  /** What admission allocates to pods, in the order in which they are asked. */
  readonly allocators?: readonly Allocator[];
  /** Why what was allocated to a pod cannot be resized in place; undefined if it can. */
  readonly resizeProblem?: (desired: Pod, allocated: Pod) => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts a while after the agent began to stop. */
  readonly late: AbortSignal;
  /** Called with the duration of each sync. */
  readonly measured?: WorkerDeps["measured"];
  /** Counters. */
  readonly counted?: {
    orphaned(): void;
    /** A pod was added again under its UID while it was still terminating. */
    restarted(pod: Pod): void;
    /** A pod was preempted; the reason names the resource that was insufficient. */
    preempted(reason: string): void;
  };
}
