import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Tracer } from "../../lib/tracer.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { PodIdentity } from "../../model/step.ts";
import type { Allocation } from "../admission/allocation.ts";
import type { ReadmissionAnswer } from "../admission/allocations.ts";
import type { Rejection } from "../admission/facts.ts";
import { podDir } from "../config/paths.ts";
import type { ExecuteDeps, PodRun } from "../execute/context.ts";
import type { PodJournal } from "../journal.ts";
import type { CrashLimits } from "../plan/crash-backoff.ts";
import type { DeadLimits } from "../plan/prune.ts";
import { PodActions } from "./actions.ts";
import { Discards } from "./discards.ts";
import type { Lifecycle, StopIntent } from "./lifecycle.ts";
import type { PodProbes } from "./probes.ts";
import { PullWaits } from "./pull-waits.ts";
import { PodResize, type ResizeDeps, type ResizeVerdict } from "./resize.ts";
import { RunningAction } from "./running-action.ts";
import { StartMemory } from "./start-memory.ts";
import type { StartSlot } from "./start-slot.ts";
import { StatusReport } from "./status-report.ts";
import { StopRecord } from "./stop-record.ts";
import { SyncRetry } from "./sync-retry.ts";

/** Upper limit of the record of a pod's resources. */
const MAX_RECORD_BYTES = 1024 * 1024;

/** Why the worker syncs: the pod is new to it, its spec is, or something else woke it. */
export type SyncOperation = "create" | "update" | "sync";

export interface WorkerDeps {
  readonly execute: ExecuteDeps;
  readonly observer: {
    read(pod: PodIdentity, options: { signal: AbortSignal }): Promise<ObservedPod>;
  };
  readonly probes: PodProbes;
  readonly journal: PodJournal;
  readonly slot: StartSlot;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined where nothing is traced. */
  readonly tracer?: Tracer | undefined;
  /** Whether the node has room for a pod with other requests. */
  resizeVerdict(pod: Pod): ResizeVerdict;
  /** Whether a pod of which nothing ran when the agent started may start again. */
  readmit(pod: Pod): ReadmissionAnswer;
  /** Allocates what a pod of an earlier agent lacks. Resolves with why it cannot be had; may be repeated if it rejects. */
  adopt(pod: Pod): Promise<Rejection | undefined>;
  /** Takes the newly derived status. */
  publish(uid: string, status: PodStatus): void;
  /** Aborts a while after the agent was told to stop: until then creates and starts are finished. */
  readonly late: AbortSignal;
  /** Called with the duration of each sync of a pod that should run. */
  measured?(operation: SyncOperation, tookMs: number): void;
}

export interface WorkerOptions {
  readonly crashLimits: CrashLimits;
  /** How many terminated containers are kept; defaults to one each. */
  deadLimits?(): DeadLimits;
  /** The pod is only known from the runtime: it is stopped and removed. */
  readonly orphan?: boolean;
  /** What the pod asked for when it was admitted: by now it may ask for more than there is. */
  readonly admitted?: Allocation;
  /** The runtime had something of the pod before this agent began. */
  readonly isAdopted?: boolean;
  /** The status from before this agent began: a terminal phase and a start time stay. */
  readonly known?: PodStatus;
}

/** What the worker hands to its parts. */
export interface WorkerState {
  readonly identity: PodIdentity;
  /** The newest version of the pod. */
  pod(): Pod;
  life(): Lifecycle;
  requestStop(stop: StopIntent): void;
  /** Called when nothing of the pod runs any more; safe to repeat. */
  killed(): void;
}

/** What `PodSync` and `PodTermination` of one worker share. */
export interface WorkerParts extends WorkerState {
  readonly deps: WorkerDeps;
  readonly options: WorkerOptions;
  readonly memory: StartMemory;
  readonly resize: PodResize;
  readonly report: StatusReport;
  readonly running: RunningAction;
  readonly retry: SyncRetry;
  readonly actions: PodActions;
  readonly discards: Discards;
  readonly pullWaits: PullWaits;
  readonly stops: StopRecord;
}

/** Builds the parts of one worker. */
export function workerParts(state: WorkerState, deps: WorkerDeps, options: WorkerOptions): WorkerParts {
  const { identity } = state;
  const { journal, clock, execute, probes, log } = deps;
  const memory = new StartMemory({ identity, journal, clock, crashLimits: options.crashLimits }, options.known);
  const directory = podDir(execute.node.paths, identity.uid);
  const record = `${directory}/resize.json`;
  const resizeDeps: ResizeDeps = {
    log,
    load: () => execute.files.readTail(record, MAX_RECORD_BYTES),
    save: (text) => execute.files.replaceFile(record, text),
    verdict: (asked) => deps.resizeVerdict(asked),
    event: (type, reason, message) => journal.event(type, reason, message),
  };
  const resize = new PodResize(resizeDeps, options.admitted);
  const publish = (uid: string, status: PodStatus): void => deps.publish(uid, status);
  const health = execute.resourceHealth ?? [];
  const isHeld = () => execute.claims?.holds(identity.uid) === true;
  const facts = { identity, memory, resize, probes, health, node: execute.node, clock, isHeld, publish };
  const report = new StatusReport(facts, options.known);
  return {
    ...state,
    deps,
    options,
    memory,
    resize,
    report,
    running: new RunningAction(() => ({ pod: state.pod(), stop: state.life().stop })),
    retry: new SyncRetry(),
    discards: new Discards(),
    pullWaits: new PullWaits({ clock, report }),
    stops: new StopRecord({ clock, log, files: execute.files, directory, bootId: execute.node.bootId }),
    actions: new PodActions({ execute, identity, memory, resize, readyToStart: () => report.readyToStart() }),
  };
}

/** One run of actions on what was observed. */
export function podRun(parts: WorkerParts, observed: ObservedPod, interrupt: AbortSignal): PodRun {
  const { deps, memory, report } = parts;
  const ready = observed.sandboxes.find((sandbox) => sandbox.state === "ready");
  memory.preStops.retain(new Set(observed.containers.filter(({ state }) => state !== "exited").map(({ id }) => id)));
  return {
    pod: parts.pod(),
    journal: deps.journal,
    slot: deps.slot,
    interrupt,
    finish: deps.late,
    sandbox: ready && { id: ready.id, attempt: ready.attempt, ips: ready.ips },
    podIp: ready?.ips[0] ?? report.current?.podIP ?? "",
    ids: new Map(observed.containers.map(({ name, id }) => [name, id] as const).toReversed()),
    preStops: memory.preStops,
    onPullWait: (container, text) => parts.pullWaits.waits(container, text),
  };
}
