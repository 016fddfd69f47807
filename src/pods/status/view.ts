import type { Abortable } from "../../lib/abort.ts";
import type { Container, ContainerStatus, Pod, PodStatus } from "../../model/generated/types.ts";
import type { ContainerKind } from "../../model/pod-facts.ts";
import { unsupportedFields } from "../../model/pod-support.ts";
import type { ContainerSummary, PodEvent, PodExplanation, PodSummary } from "../../model/step.ts";
import type { DesiredPod, DesiredPods } from "../desired.ts";
import type { Journal } from "../journal.ts";
import type { Observer } from "../observe/observe.ts";
import type { WorkerPool } from "../worker/pool.ts";

/** What the commands, the read-only port and the live view see of the ring. Reads only; keeps no facts of its own. */
export class AgentView {
  constructor(
    private readonly deps: {
      desired: DesiredPods;
      pool: WorkerPool;
      journal: Journal;
      observer: Pick<Observer, "get">;
    },
  ) {}

  /** One summary for each pod that is wanted or still ends, sorted by namespace and name. */
  summaries(): PodSummary[] {
    const all = [...this.deps.desired.list().map(({ uid }) => uid), ...this.deps.pool.uids()];
    return [...new Set(all)]
      .map((uid) => this.summary(uid))
      .filter((summary) => summary !== undefined)
      .sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
  }

  summary(uid: string): PodSummary | undefined {
    const desired = this.deps.desired.get(uid);
    const pod = this.deps.pool.worker(uid)?.pod ?? desired?.pod;
    return pod && this.summarize(uid, pod, desired);
  }

  explain(uid: string): PodExplanation | undefined {
    const summary = this.summary(uid);
    const pod = this.deps.pool.worker(uid)?.pod ?? this.deps.desired.get(uid)?.pod;
    if (summary === undefined || pod === undefined) return undefined;
    const journal = this.deps.journal.find(uid);
    const status = this.deps.pool.status(uid);
    return {
      ...summary,
      containers: [
        ...(pod.spec.initContainers ?? []).map((container) => describe(container, "init", status)),
        ...pod.spec.containers.map((container) => describe(container, "regular", status)),
        ...(pod.spec.ephemeralContainers ?? []).map((container) => describe(container, "ephemeral", status)),
      ],
      steps: journal?.history ?? [],
      errors: journal?.distinctErrors ?? [],
      events: this.deps.journal.events(0).filter((event) => event.pod.uid === uid),
      warnings: [...(this.deps.desired.get(uid)?.warnings ?? []), ...unsupportedFields(pod).warned],
    };
  }

  events(since: number): readonly PodEvent[] {
    return this.deps.journal.events(since);
  }

  /** The pods as `/pods` shows them: as wanted, with the status of now. */
  pods(): Pod[] {
    return this.deps.desired
      .list()
      .map(({ uid, pod }) => ({ ...pod, status: this.deps.pool.status(uid) ?? pod.status }));
  }

  /** The log file of a container's newest instance, or of the one before it. */
  logPath(uid: string, which: { readonly container: string; readonly previous: boolean }): string | undefined {
    const all = this.deps.observer.get(uid)?.containers ?? [];
    return all.filter(({ name }) => name === which.container)[which.previous ? 1 : 0]?.logPath;
  }

  onChange(fn: (uid: string) => void, options: Abortable): void {
    this.deps.journal.onChange(fn, options);
    this.deps.pool.onStatus(fn, options);
  }

  private summarize(uid: string, pod: Pod, desired: DesiredPod | undefined): PodSummary {
    const status = this.deps.pool.status(uid);
    const journal = this.deps.journal.find(uid);
    const regular = status?.containerStatuses ?? [];
    const all = [...(status?.initContainerStatuses ?? []), ...regular];
    const worker = this.deps.pool.worker(uid);
    const step = journal?.current;
    return {
      uid,
      name: pod.metadata.name ?? "",
      namespace: pod.metadata.namespace ?? "",
      source: desired?.source ?? "runtime",
      state: worker?.isStopping === true ? "Terminating" : stateWord(status),
      phase: status?.phase ?? "Pending",
      readyContainers: regular.filter((one) => one.ready).length,
      totalContainers: pod.spec.containers.length,
      restarts: all.reduce((sum, one) => sum + one.restartCount, 0),
      ip: status?.podIP ?? "",
      seenAt: desired?.seenAt ?? 0,
      ...(status?.startTime === undefined ? {} : { startedAt: Date.parse(status.startTime) }),
      ...(step === undefined ? {} : { step }),
      ...(journal?.next === undefined ? {} : { next: journal.next }),
    };
  }
}

/** The most telling word: a container's waiting reason, the pod's reason, else the phase. */
export function stateWord(status: PodStatus | undefined): string {
  if (status === undefined) return "Pending";
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const waiting = all.map((one) => one.state?.waiting?.reason ?? "").filter((reason) => reason !== "");
  const telling = waiting.find((reason) => reason !== "PodInitializing" && reason !== "ContainerCreating");
  if (telling !== undefined) return telling;
  if (status.phase === "Pending" && waiting[0] !== undefined) return waiting[0];
  return status.reason ?? status.phase ?? "Pending";
}

function describe(container: Container, kind: ContainerKind, status: PodStatus | undefined): ContainerSummary {
  const lists = {
    init: status?.initContainerStatuses,
    regular: status?.containerStatuses,
    ephemeral: status?.ephemeralContainerStatuses,
  };
  const list = lists[kind];
  const one: ContainerStatus | undefined = list?.find(({ name }) => name === container.name);
  const running = one?.state?.running;
  const ended = one?.state?.terminated ?? one?.lastState?.terminated;
  const since = running?.startedAt ?? one?.state?.terminated?.finishedAt;
  return {
    name: container.name,
    kind,
    image: container.image ?? "",
    id: one?.containerID ?? "",
    state: running !== undefined ? "running" : one?.state?.terminated !== undefined ? "terminated" : "waiting",
    reason: one?.state?.waiting?.reason ?? one?.state?.terminated?.reason ?? "",
    message: one?.state?.waiting?.message ?? one?.state?.terminated?.message ?? "",
    ready: one?.ready ?? false,
    restarts: one?.restartCount ?? 0,
    ...(since === undefined ? {} : { since: Date.parse(since) }),
    ...(ended === undefined ? {} : { exitCode: ended.exitCode }),
  };
}
