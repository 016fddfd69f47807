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
  /** All containers are about to be restarted; recorded before the first of them is killed. */
  | { readonly do: "restartAll"; readonly triggers: readonly ObservedContainer[] }
  | { readonly do: "removeSandbox"; readonly sandboxId: string }
  /** Changes the limits of a running container. */
  | { readonly do: "resizeContainer"; readonly running: ObservedContainer; readonly spec: Container }
  /** Changes the limits of the whole pod. */
  | { readonly do: "resizePod"; readonly sandboxId: string };

/** Which container to start, and what it replaces. */
export interface ContainerStart {
  readonly name: string;
  readonly kind: ContainerKind;
  /** The restart count; undefined if the runtime has no earlier instance: it is then taken from the log files. */
  readonly attempt: number | undefined;
  /** A container that was created but never started (the agent died in between): removed first, its attempt used again. */
  readonly replaces?: string;
  /** When the instance before it terminated: the crash back-off counts from there. */
  readonly previousEnd?: number;
  /** The crash history that it starts with; the worker adds it. */
  readonly crash?: CrashState;
}

/** A container that will be started later. */
export interface ContainerWait {
  readonly container: string;
  readonly afterMs: number;
  readonly reason: string;
  readonly message: string;
}

/** What to do for a pod that should run, and what is waited for. */
export type PodPlan =
  | {
      readonly kind: "converge";
      readonly actions: readonly PodAction[];
      readonly waits: readonly ContainerWait[];
      /** When a terminated container is old enough to be removed. */
      readonly pruneAfterMs?: number;
    }
  /** Nothing runs and nothing will: what is left is stopped, the phase is terminal. */
  | { readonly kind: "finish"; readonly why: string };

/** A failed start that is not tried again before `untilMono`, as long as the container is the same. */
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

/** What a plan is computed from, besides the pod. */
export interface PlanFacts {
  readonly observed: ObservedPod;
  readonly memory: PlanMemory;
  readonly probes?: PodProbeResults;
  /** Returns the actual resources of a running container; undefined if unknown. */
  actualOf?(container: ObservedContainer): ResourceRequirements | undefined;
  /** The actual resources of the pod as a whole; undefined if unknown. */
  readonly actualPod?: ResourceRequirements | undefined;
  /** True if a resize of this container, or of `POD_LEVEL`, began and its result is unknown: it is applied again. */
  isUncertain?(id: string): boolean;
  /** What runs is not in the pod's cgroup: it has to be killed and created again. */
  readonly isMisplaced?: boolean;
  /** Nothing may be started, for this reason; what runs is left alone. */
  readonly refusal?: { readonly reason: string; readonly message: string } | undefined;
  /** How many terminated containers are kept. */
  readonly dead?: DeadLimits;
  /** How containers ended that the runtime no longer has, by name: they must not run twice. */
  readonly lost?: ReadonlyMap<string, { readonly exitCode: number }> | undefined;
}

/** The key under which a failed resize is held back. */
export function resizeHold(container: string): string {
  return `${container} resize`;
}

/** The crash history of restarts of all containers; no container can have this name. */
export const RESTART_ALL = "*";
