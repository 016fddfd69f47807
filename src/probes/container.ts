import type { Instant } from "../lib/clock.ts";
import type { Container, ContainerStatus } from "../model/generated/types.ts";
import type { ObservedContainer } from "../model/observed.ts";
import type { ContainerProbes, ProbeKind, ProbeReport, ProbeResult } from "../model/probe.ts";
import { carriedOver } from "./carried-over.ts";
import { handlerOf } from "./handlers/index.ts";
import type { ContainerRecord, PodRecord } from "./records.ts";
import type { Ran } from "./run-probe.ts";
import { PROBE_KINDS, probeOf, rulesOf } from "./spec.ts";
import { ProbeWorker, type WorkerDeps, type WorkerHooks } from "./worker.ts";

export interface ContainerOptions {
  readonly upstreamTiming: boolean;
  /** Start time of the agent. */
  readonly agentStart: Instant;
  /** From 0 to below 1. */
  random(): number;
}

/** Receives the runs and results of a container's probes. */
export interface ContainerHooks extends Pick<WorkerHooks, "onBegin" | "onEnd"> {
  ran(container: string, kind: ProbeKind, ran: Ran & { readonly tookMs: number }): void;
  changed(container: string, kind: ProbeKind, result: ProbeResult): void;
}

/** The probes of one container of a pod. As in Kubernetes, a later change of the spec does not change them. */
export class ContainerProbing {
  private readonly workers: readonly ProbeWorker[];
  private seen: { observed: ObservedContainer; podIp: string; isOld: boolean } | undefined;

  constructor(
    private readonly container: Container,
    private readonly parts: { deps: WorkerDeps; hooks: ContainerHooks; record: PodRecord },
    private readonly options: ContainerOptions,
  ) {
    const { hooks, deps } = parts;
    const { name } = container;
    this.workers = PROBE_KINDS.flatMap((kind) => {
      const probe = probeOf(container, kind);
      const handler = probe && handlerOf(probe);
      if (probe === undefined || handler === undefined) return [];
      const rules = rulesOf(kind, probe, options.upstreamTiming);
      const own: WorkerHooks = {
        ran: (of, { result, output }, tookMs) => hooks.ran(name, of, { result, output, tookMs }),
        changed: (of, result) => this.changed(of, result),
        onBegin: (used) => hooks.onBegin(used),
        onEnd: (used) => hooks.onEnd(used),
      };
      return [new ProbeWorker({ probe, handler, rules }, deps, own)];
    });
  }

  get name(): string {
    return this.container.name;
  }

  get results(): ContainerProbes | undefined {
    if (this.seen === undefined) return undefined;
    const result = (kind: ProbeKind): ProbeResult | undefined => this.worker(kind)?.result;
    const flag = (kind: ProbeKind): boolean | undefined => {
      const of = result(kind);
      return of === undefined ? undefined : of === "success";
    };
    return {
      containerId: this.seen.observed.id,
      started: flag("startup"),
      ready: flag("readiness"),
      liveness: result("liveness"),
      startup: result("startup"),
    };
  }

  /** Each probe as it is now. */
  report(): readonly ProbeReport[] {
    return this.workers.map((worker) => worker.report(this.name));
  }

  /** What is persisted for a restart of the agent; undefined if there is nothing to restore. */
  get record(): readonly [string, ContainerRecord] | undefined {
    const { results } = this;
    if (results === undefined || (results.started !== true && results.ready !== true)) return undefined;
    const started = results.started === true ? { started: true } : {};
    return [results.containerId, { ...started, ...(results.ready === true ? { ready: true } : {}) }];
  }

  /** Takes the newest instance as it was just observed, and its status in the API as the agent received it, if any. */
  follow(observed: ObservedContainer, podIp: string, reported: ContainerStatus | undefined): void {
    const isOld = observed.startedAt > 0 && observed.startedAt < this.options.agentStart.wall;
    if (this.seen?.observed.id !== observed.id) {
      const record = this.parts.record.get(observed.id);
      const carried = carriedOver(observed.id, { record, reported: isOld ? reported : undefined });
      for (const worker of this.workers) worker.adopt(observed.id, isCarried(worker.kind, carried));
    }
    this.seen = { observed, podIp, isOld };
    this.observe();
    if (observed.state === "running" && this.isStarted) this.worker("readiness")?.trigger();
  }

  /**
   * The pod is terminating: nothing is restarted any more, but readiness is still reported. A container that has not
   * started stays so.
   */
  terminating(): void {
    this.worker("liveness")?.stop("success");
    this.worker("startup")?.stop();
  }

  stop(): void {
    for (const worker of this.workers) worker.stop();
  }

  private get isStarted(): boolean {
    const startup = this.worker("startup");
    return startup === undefined || startup.result === "success";
  }

  private worker(kind: ProbeKind): ProbeWorker | undefined {
    return this.workers.find((worker) => worker.kind === kind);
  }

  private observe(): void {
    const { seen, container } = this;
    if (seen === undefined) return;
    const now = this.parts.deps.clock.now();
    const { id, state, startedAt } = seen.observed;
    for (const worker of this.workers) {
      const target = { container, containerId: id, podIp: seen.podIp };
      const observation = { state, startedAt, started: this.isStarted, now, jitterMs: this.jitter(worker, seen.isOld) };
      worker.observe(target, observation);
    }
  }

  /**
   * Spreads the probes of running containers over their period when the agent starts. Kubernetes delays those of new
   * containers too, which would only make them ready later.
   */
  private jitter(worker: ProbeWorker, isOld: boolean): number {
    const { agentStart, upstreamTiming } = this.options;
    const isYoung = worker.tickBase - agentStart.mono < worker.periodMs;
    if (!isYoung || (!upstreamTiming && !isOld)) return 0;
    // Never 0: that means no jitter, and a container that was ready would be treated as a new one.
    return Math.max(1, Math.floor(this.options.random() * worker.periodMs));
  }

  private changed(kind: ProbeKind, result: ProbeResult): void {
    // Liveness and readiness probes start once the startup probe has succeeded.
    if (kind === "startup") this.observe();
    this.parts.hooks.changed(this.name, kind, result);
  }
}

function isCarried(kind: ProbeKind, { started, ready }: ContainerRecord): boolean {
  switch (kind) {
    case "startup":
      return started === true;
    case "readiness":
      return ready === true;
    case "liveness":
      return false;
  }
}
