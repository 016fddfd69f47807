import type { Instant } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import { podIdentity } from "../model/pod-facts.ts";
import {
  type ContainerProbes,
  NO_PROBE_RESULTS,
  type PodProbeResults,
  type ProbeKind,
  type ProbeReport,
  type ProbeResult,
} from "../model/probe.ts";
import type { PodIdentity } from "../model/step.ts";
import { reportedStatus } from "./carried-over.ts";
import { ContainerProbing } from "./container.ts";
import type { HandlerDeps, ProbeHandler } from "./handlers/handler.ts";
import { type ContainerRecord, type PodRecord, type RecordFiles, RecordWriter, readRecord } from "./records.ts";
import type { Ran } from "./run-probe.ts";
import { SlotClock } from "./slots.ts";
import { probedContainers } from "./spec.ts";
import type { WorkerDeps } from "./worker.ts";

/** An exec probe costs a process: at most so many of their extra rounds run at the same time. */
const MOST_EXTRA_COMMANDS = 2;

/** One run of a probe. */
export interface ProbeRun {
  readonly pod: PodIdentity;
  readonly container: string;
  readonly kind: ProbeKind;
  readonly result: Ran["result"];
  readonly output: string;
  readonly tookMs: number;
}

/** A changed result. */
export interface ProbeChange {
  readonly pod: PodIdentity;
  readonly container: string;
  readonly kind: ProbeKind;
  readonly result: ProbeResult;
}

/** Receives runs and changed results. */
export interface ProbeHooks {
  /** Called for every run that counts. */
  ran(run: ProbeRun): void;
  /** Called when the result of a probe changes. */
  changed(change: ProbeChange): void;
  /** Called when the pod is no longer probed. */
  forgotten(pod: PodIdentity): void;
}

export interface SchedulerDeps extends HandlerDeps, Pick<WorkerDeps, "clock"> {
  readonly log: Logger;
  readonly files: RecordFiles;
  readonly hooks: ProbeHooks;
}

export interface SchedulerOptions {
  /** Only the runs of Kubernetes, at the times of Kubernetes. */
  readonly upstreamTiming: boolean;
  /** The address of pods on the host network. */
  readonly hostIp: string;
  random(): number;
}

interface ProbedPod {
  readonly identity: PodIdentity;
  readonly record: PodRecord;
  readonly writer: RecordWriter;
  readonly containers: Map<string, ContainerProbing>;
}

/** Runs the probes of all pods with one worker per probe, idle while nothing is due. Called by the pod workers. */
export class ProbeScheduler {
  private readonly pods = new Map<string, ProbedPod>();
  private readonly agentStart: Instant;
  private readonly slots: SlotClock;
  private commands = 0;

  constructor(
    private readonly deps: SchedulerDeps,
    private readonly options: SchedulerOptions,
    signal: AbortSignal,
  ) {
    this.agentStart = deps.clock.now();
    this.slots = new SlotClock(deps.clock);
    signal.addEventListener("abort", () => this.stopAll(), { once: true });
  }

  /** Called at each sync of a pod that should run, with the pod as it was just observed. */
  follow(pod: Pod, observed: ObservedPod): void {
    const probed = probedContainers(pod);
    const { uid } = podIdentity(pod);
    if (probed.length === 0 && !this.pods.has(uid)) return;
    const own = this.pods.get(uid) ?? this.add(pod);
    for (const [name, container] of own.containers) {
      if (probed.some((one) => one.name === name)) continue;
      container.stop();
      own.containers.delete(name);
    }
    const podIp = this.ipOf(pod, observed);
    for (const container of probed) {
      let probing = own.containers.get(container.name);
      if (probing === undefined) {
        const parts = { deps: this.workerDeps(), hooks: this.hooksOf(own), record: own.record };
        probing = new ContainerProbing(container, parts, { ...this.options, agentStart: this.agentStart });
        own.containers.set(container.name, probing);
      }
      const newest = observed.containers.find(({ name }) => name === container.name);
      if (newest !== undefined) probing.follow(newest, podIp, reportedStatus(pod, container.name));
    }
  }

  /** The pod is terminating: liveness and startup probes stop, readiness probes run until `forget`. Idempotent. */
  terminating(uid: string): void {
    const pod = this.pods.get(uid);
    pod?.writer.close();
    for (const container of pod?.containers.values() ?? []) container.terminating();
  }

  /** All containers of the pod have terminated. Idempotent. */
  forget(uid: string): void {
    const pod = this.pods.get(uid);
    if (pod === undefined) return;
    pod.writer.close();
    for (const container of pod.containers.values()) container.stop();
    this.pods.delete(uid);
    this.deps.hooks.forgotten(pod.identity);
  }

  /** Returns the results, each for the latest instance of its container. */
  results(uid: string): PodProbeResults {
    const pod = this.pods.get(uid);
    if (pod === undefined) return NO_PROBE_RESULTS;
    const results = new Map<string, ContainerProbes>();
    for (const [name, { results: own }] of pod.containers) if (own !== undefined) results.set(name, own);
    return results;
  }

  /** Each probe of a pod as it is now. */
  report(uid: string): readonly ProbeReport[] {
    return [...(this.pods.get(uid)?.containers.values() ?? [])].flatMap((container) => container.report());
  }

  /** The agent is shutting down. Persisted results stay, and a write in progress is completed. */
  private stopAll(): void {
    for (const pod of this.pods.values()) for (const container of pod.containers.values()) container.stop();
  }

  private add(pod: Pod): ProbedPod {
    const identity = podIdentity(pod);
    const { files, log } = this.deps;
    const own: ProbedPod = {
      identity,
      record: readRecord(files, identity.uid, log),
      writer: new RecordWriter(identity.uid, { files, log }),
      containers: new Map(),
    };
    this.pods.set(identity.uid, own);
    return own;
  }

  private ipOf(pod: Pod, observed: ObservedPod): string {
    if (pod.spec.hostNetwork === true) return this.options.hostIp;
    return observed.sandboxes.find(({ state }) => state === "ready")?.ips[0] ?? "";
  }

  private workerDeps(): WorkerDeps {
    const { runtime, net, clock } = this.deps;
    const mayRunExtra = ({ name }: ProbeHandler): boolean => name !== "exec" || this.commands < MOST_EXTRA_COMMANDS;
    return { runtime, net, clock, slots: this.slots, mayRunExtra };
  }

  private hooksOf(own: ProbedPod): ConstructorParameters<typeof ContainerProbing>[1]["hooks"] {
    const { hooks } = this.deps;
    const count = (by: number) => (handler: ProbeHandler) => {
      if (handler.name === "exec") this.commands += by;
    };
    return {
      onBegin: count(1),
      onEnd: count(-1),
      ran: (container, kind, { result, output, tookMs }) =>
        hooks.ran({ pod: own.identity, container, kind, result, output, tookMs }),
      changed: (container, kind, result) => {
        if (kind !== "liveness") own.writer.write(recordOf(own));
        hooks.changed({ pod: own.identity, container, kind, result });
      },
    };
  }
}

function recordOf({ containers }: ProbedPod): PodRecord {
  const record = new Map<string, ContainerRecord>();
  for (const { record: entry } of containers.values()) if (entry !== undefined) record.set(entry[0], entry[1]);
  return record;
}
