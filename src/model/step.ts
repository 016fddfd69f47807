import type { PodStorage } from "./pod-storage.ts";

/** What a pod's worker is doing, as the journal, `explain`, events and the live view show it. */
export type StepName =
  | "admitted"
  | "waiting"
  | "volumes"
  | "claims"
  | "sandbox"
  | "network"
  | "pull"
  | "create"
  | "start"
  | "running"
  | "backoff"
  | "kill"
  | "resize"
  | "hook"
  | "probe"
  | "terminate"
  | "remove"
  | "finished";

/** How far a running pull is, at the last look. */
export interface StepProgress {
  readonly doneBytes: number;
  /** Undefined until the image's manifest is there. */
  readonly totalBytes?: number;
  /** Of the last seconds; undefined until there are two looks. */
  readonly bytesPerSecond?: number;
  /** Milliseconds at this rate. */
  readonly remainingMs?: number;
}

/** One step with its times (wall-clock milliseconds). `until` and `outcome` are absent while it is in progress. */
export interface PodStep {
  readonly step: StepName;
  readonly container?: string;
  readonly since: number;
  readonly until?: number;
  readonly outcome?: "ok" | "failed" | "aborted";
  /** What it waits for, how far it is, or what came of it. */
  readonly detail: string;
  /** Only of a running pull, and only where the runtime reports it. */
  readonly progress?: StepProgress;
}

/** One distinct error of a pod, however often it came. */
export interface PodError {
  readonly step: StepName;
  readonly container?: string;
  readonly message: string;
  readonly count: number;
  readonly first: number;
  readonly last: number;
}

/** When and why the worker will try again by itself. */
export interface NextTry {
  readonly at: number;
  readonly why: string;
}

/** A Kubernetes-style event about a pod, repeated ones counted together. */
export interface PodEvent {
  /** Grows by one with each change of any event, so a reader can go on where it stopped. */
  readonly sequence: number;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly pod: PodIdentity;
  readonly container?: string;
  /** Set if the event is about a claim that the pod uses. */
  readonly claim?: ClaimIdentity;
  /** Of the Event object. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly count: number;
  readonly first: number;
  readonly last: number;
  /** Only of the passing events of a running pull, reason `PullProgress`. */
  readonly progress?: StepProgress;
}

export interface ClaimIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface PodIdentity {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** One line of `kubelet ps` and of the live view. */
export interface PodSummary extends PodIdentity {
  readonly source: string;
  /** The phase, or a more telling word (`CrashLoopBackOff`, `Terminating`, `ImagePullBackOff`). */
  readonly state: string;
  readonly phase: string;
  readonly readyContainers: number;
  readonly totalContainers: number;
  readonly restarts: number;
  readonly ip: string;
  /** Wall-clock milliseconds at which the agent first saw the pod. */
  readonly seenAt: number;
  readonly startedAt?: number;
  /** The step in progress, or the last one. */
  readonly step?: PodStep;
  readonly next?: NextTry;
}

export interface ContainerSummary {
  readonly name: string;
  readonly kind: "init" | "regular" | "ephemeral";
  readonly image: string;
  readonly id: string;
  readonly state: "waiting" | "running" | "terminated";
  readonly reason: string;
  readonly message: string;
  readonly ready: boolean;
  readonly restarts: number;
  readonly since?: number;
  readonly exitCode?: number;
}

/** All that `kubelet explain POD` shows. */
export interface PodExplanation extends PodSummary {
  readonly containers: readonly ContainerSummary[];
  /** Oldest first, bounded. */
  readonly steps: readonly PodStep[];
  readonly errors: readonly PodError[];
  readonly events: readonly PodEvent[];
  /** Fields of the manifest that the agent does not act on, and other remarks. */
  readonly warnings: readonly string[];
  /** What it keeps on the node; only where that was asked for. */
  readonly storage?: PodStorage;
}
