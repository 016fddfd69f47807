import type { StatusFailure } from "../status/derive.ts";

/**
 * Where a worker is:
 *
 *            stop intent             killed and cleaned up         not wanted, everything removed
 *   syncing ─────────────► stopping ───────────────────────► stopped ──────────────────────► gone
 *      │ ▲                  │   ▲                              │ ▲
 *      └─┘                  └───┘                              └─┘
 *      sync             shorter grace period,          the source still has the pod
 *                       failed kill or cleanup
 *
 * A phase never goes back. What may change in any phase is the stop intent, which can only shrink, and whether the pod
 * is still wanted, which can only become false. Within `stopping` the pod becomes killed: nothing of it runs any more,
 * and it needs no room on the node, however long its cleanup (volumes, cgroup) takes.
 */
export type WorkerPhase = "syncing" | "stopping" | "stopped" | "gone";

/** How and why a pod is stopped. */
export interface StopIntent {
  /** Upper limit of each container's grace period; infinite if only the containers' own count (an orphaned pod). */
  readonly graceSeconds: number;
  /** Set if the agent itself ends the pod: by eviction, preemption or deadline. */
  readonly failure?: StatusFailure | undefined;
}

/** All that decides what a worker does next, besides the pod and the runtime. */
export interface Lifecycle {
  readonly phase: WorkerPhase;
  readonly stop: StopIntent | undefined;
  /** False once the source no longer has the pod: nothing of it is kept. */
  readonly isWanted: boolean;
  readonly keepLogs: boolean;
  /** True once its containers and sandboxes were stopped for good; it never becomes false again. */
  readonly isKilled: boolean;
}

/** What happens to a lifecycle: requests from outside, and what the worker has done. */
export type LifecycleEvent =
  /** Deletion, eviction, deadline, or the pod's own end. */
  | { readonly on: "stopRequested"; readonly stop: StopIntent }
  /** The source no longer has the pod. */
  | { readonly on: "removed"; readonly stop: StopIntent; readonly keepLogs?: boolean | undefined }
  /** Nothing of the pod runs any more. */
  | { readonly on: "killed" }
  | { readonly on: "entered"; readonly phase: WorkerPhase };

/** A pod that a source has. */
export const WANTED: Lifecycle = {
  phase: "syncing",
  stop: undefined,
  isWanted: true,
  keepLogs: false,
  isKilled: false,
};

/** A pod that only the runtime has: its containers are stopped with their own grace periods. */
export const ORPHANED: Lifecycle = {
  phase: "syncing",
  stop: { graceSeconds: Number.POSITIVE_INFINITY },
  isWanted: false,
  keepLogs: false,
  isKilled: false,
};

const ORDER: readonly WorkerPhase[] = ["syncing", "stopping", "stopped", "gone"];

/** The lifecycle after an event. Pure; events may come in any order and more than once. */
export function advance(life: Lifecycle, event: LifecycleEvent): Lifecycle {
  switch (event.on) {
    case "stopRequested":
      return { ...life, stop: mergeStop(life.stop, event.stop) };
    case "removed": {
      const { keepLogs = life.keepLogs } = event;
      return { ...life, stop: mergeStop(life.stop, event.stop), isWanted: false, keepLogs };
    }
    case "killed":
      return life.isKilled ? life : { ...life, isKilled: true };
    case "entered":
      return ORDER.indexOf(event.phase) > ORDER.indexOf(life.phase) ? { ...life, phase: event.phase } : life;
  }
}

/** One intent of two: the shorter grace period and the earlier failure count. Pure. */
export function mergeStop(before: StopIntent | undefined, asked: StopIntent): StopIntent {
  // At least a second, as in Kubernetes, which takes zero for "not set".
  const graceSeconds = Math.max(1, Math.min(asked.graceSeconds, before?.graceSeconds ?? asked.graceSeconds));
  const failure = before?.failure ?? asked.failure;
  return failure === undefined ? { graceSeconds } : { graceSeconds, failure };
}

/** What a worker does next. */
export type WorkerStep = "sync" | "enterStopping" | "stop" | "rest" | "remove" | "end";

/** The step that follows from a lifecycle. Pure. */
export function nextStep({ phase, stop, isWanted }: Lifecycle): WorkerStep {
  switch (phase) {
    case "syncing":
      return stop === undefined ? "sync" : "enterStopping";
    case "stopping":
      return "stop";
    case "stopped":
      return isWanted ? "rest" : "remove";
    case "gone":
      return "end";
  }
}
