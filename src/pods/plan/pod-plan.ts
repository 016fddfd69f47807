import type { Container, ResourceRequirements } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import type { ContainerKind } from "../../model/pod-facts.ts";
import type { PodProbeResults } from "../../model/probe.ts";
import type { CrashState } from "./crash-backoff.ts";
import type { DeadLimits } from "./prune.ts";

/** One thing to do to the runtime. `execute/` has one file for each. */
export type PodAction =
  | { readonly do: "stopPod"; readonly why: string }
  | { readonly do: "createSandbox"; readonly attempt: number }
  | {
      readonly do: "killContainer";
      readonly container: ObservedContainer;
      readonly why: string;
      readonly replace?: boolean;
      /** In place of the pod's own grace period. */
      readonly graceSeconds?: number;
    }
  | { readonly do: "startContainer"; readonly start: ContainerStart }
  | { readonly do: "removeContainer"; readonly container: ObservedContainer; readonly keepLogs?: boolean }
  /** All containers are about to be started anew; said before the first of them is stopped. */
  | { readonly do: "restartAll"; readonly triggers: readonly ObservedContainer[] }
  | { readonly do: "removeSandbox"; readonly sandboxId: string }
  /** Other limits for a container that goes on running. */
  | { readonly do: "resizeContainer"; readonly running: ObservedContainer; readonly spec: Container }
  /** The whole pod has other limits. */
  | { readonly do: "resizePod"; readonly sandboxId: string };

/** Which container to start, and in place of what. */
export interface ContainerStart {
  readonly name: string;
  readonly kind: ContainerKind;
  /** The restart count; undefined when the runtime knows of no earlier one and the log files have to tell. */
  readonly attempt: number | undefined;
  /** A container that was created but never started (the agent died in between): removed first, its attempt used again. */
  readonly replaces?: string;
  /** When the instance before it ended: what the crash back-off counts from. */
  readonly previousEnd?: number;
  /** The crash history that it starts with; the worker adds it. */
  readonly crash?: CrashState;
}

/** A container that will be started, but not yet. */
export interface ContainerWait {
  readonly container: string;
  readonly afterMs: number;
  readonly reason: string;
  readonly message: string;
}

/** What is to be done for a pod, and what is waited for. */
export type PodPlan =
  | {
      readonly kind: "converge";
      readonly actions: readonly PodAction[];
      readonly waits: readonly ContainerWait[];
      /** When an ended container is old enough to go. */
      readonly pruneAfterMs?: number;
    }
  /** Nothing runs and nothing will: stop what is left, the phase is final. */
  | { readonly kind: "finish"; readonly why: string };

/** A start that failed and is not to be tried again before `untilMono`, as long as the container is the same. */
export interface StartHold {
  readonly untilMono: number;
  readonly hash: string;
  readonly reason: string;
  readonly message: string;
}

/** What a worker remembers between two plans. */
export interface PlanMemory {
  readonly crashes: ReadonlyMap<string, CrashState>;
  readonly holds: ReadonlyMap<string, StartHold>;
  /** Containers that were killed to be started again at once: they start whatever the restart policy says. */
  readonly replacing: ReadonlySet<string>;
}

/** What a plan is made from, besides the pod. */
export interface PlanFacts {
  readonly observed: ObservedPod;
  readonly memory: PlanMemory;
  readonly probes?: PodProbeResults;
  /** What a running container has of cpu and memory; undefined when nobody knows. */
  actualOf?(container: ObservedContainer): ResourceRequirements | undefined;
  /** What the pod as a whole has of them; undefined when nobody knows. */
  readonly actualPod?: ResourceRequirements | undefined;
  /** What runs is not in the pod's cgroup: it has to be killed and made anew. */
  readonly isMisplaced?: boolean;
  /** Nothing may be started, for this reason; what runs is left alone. */
  readonly refusal?: { readonly reason: string; readonly message: string } | undefined;
  /** How many ended containers are kept. */
  readonly dead?: DeadLimits;
}

/** Under which name a resize that failed is held back. */
export function resizeHold(container: string): string {
  return `${container} resize`;
}

/** The crash history of restarts of all containers; no container can have this name. */
export const RESTART_ALL = "*";
