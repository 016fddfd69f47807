import type { ContainerStatus, RuntimeEvent, RuntimePort, SandboxStatus } from "../../adapters/runtime/port.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import { Backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Live, sleepLive } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { CONTAINER_HASH_ANNOTATION, POD_UID_LABEL } from "../../model/labels.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../../model/observed.ts";
import { idsOf, type ListedPart, ObservationCache, type PodParts } from "./observation-cache.ts";
import { type ExecutorRuntime, RecordingRuntime } from "./recording-runtime.ts";

type Runtime = Pick<
  RuntimePort,
  "listSandboxes" | "listContainers" | "sandboxStatus" | "containerStatus" | "events" | "eventSource"
>;

type ContainerEvent = Extract<RuntimeEvent, { kind: "container" }>;

/** How late an event may be before the change counts as missed. */
const EVENT_LATE_MS = 1000;
/** A failed list is retried soon: until then it is unknown what happened while the runtime was unavailable. */
const LIST_RETRY = { initialMs: 500, maxMs: 5000 };

/** A pod as the runtime lists it. */
export interface ListedPod {
  readonly name: string;
  readonly namespace: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The callbacks of the observer. */
export interface ObserverHooks {
  /** Something about this pod changed, or may have. Carries no facts. */
  wake(uid: string): void;
  /** Every pod that the runtime knows, after each (re)connection and each audit. */
  listed(pods: ReadonlyMap<string, ListedPod>): void;
  /** Called with the duration of each list of the whole runtime. */
  relisted?(tookMs: number): void;
  /** Called with the duration of each read of one pod. */
  read?(tookMs: number): void;
  /** The audit found a change that no event had reported. */
  missed(uid: string): void;
  /** Returns the termination message of an exited container: the runtime's message and that of the container. */
  endMessage(container: ObservedContainer): Promise<string>;
}

/**
 * Observes the runtime, by pod. `read` always asks the runtime (a worker plans only on what was read after its last
 * action), but lists only pods whose parts are not known; `get` and `list` return what was read last.
 */
export class Observer {
  private readonly cache = new ObservationCache();

  constructor(
    private readonly deps: { runtime: Runtime; clock: Clock; log: Logger },
    private readonly hooks: ObserverHooks,
    /** How often everything is listed to see whether the events missed something. */
    private readonly auditEveryMs: Live<number>,
  ) {}

  /** The runtime for the executors: what they create, start and remove through it is known without a list. */
  recording(runtime: ExecutorRuntime): ExecutorRuntime {
    return new RecordingRuntime({ runtime, cache: this.cache });
  }

  /** Last known state; may be stale. */
  get(uid: string): ObservedPod | undefined {
    return this.cache.get(uid);
  }

  list(): readonly ObservedPod[] {
    return this.cache.list();
  }

  /** Drops what is known of a pod that is gone. */
  evict(uid: string): void {
    this.cache.evict(uid);
  }

  /** Reads one pod from the runtime. Containers that vanish meanwhile are left out. */
  async read(pod: { uid: string; name: string; namespace: string }, options: Abortable): Promise<ObservedPod> {
    const readAt = this.deps.clock.now().mono;
    const ticket = this.cache.beginRead(pod.uid);
    const { sandboxes, containers } = ticket.parts ?? (await this.listParts(pod.uid, options));
    const { runtime } = this.deps;
    const known = this.cache.get(pod.uid);
    const [sandboxStates, containerStates] = await Promise.all([
      Promise.all(sandboxes.map((id) => orGone(runtime.sandboxStatus(id, options)))),
      Promise.all(
        containers.map(async ({ id, sandboxId }) => {
          const before = known?.containers.find((container) => container.id === id);
          // An exited container changes no more once the runtime has settled its exit.
          if (before !== undefined && isSettled(before) && !ticket.outdated.has(id)) return before;
          const status = await orGone(runtime.containerStatus(id, options));
          const container = status && toObserved(status, sandboxId);
          if (container?.state !== "exited") return container;
          return { ...container, message: await this.hooks.endMessage(container) };
        }),
      ),
    ]);
    const observed: ObservedPod = {
      uid: pod.uid,
      name: pod.name,
      namespace: pod.namespace,
      readAt,
      sandboxes: sandboxStates.filter(isPresent).map(toSandbox).sort(newestSandboxFirst),
      containers: containerStates.filter(isPresent).sort(newestContainerFirst),
    };
    this.cache.store(observed, ticket);
    this.hooks.read?.(this.deps.clock.now().mono - readAt);
    return observed;
  }

  private async listParts(uid: string, options: Abortable): Promise<PodParts> {
    const labels = { [POD_UID_LABEL]: uid };
    const [sandboxes, containers] = await Promise.all([
      this.deps.runtime.listSandboxes({ labels }, options),
      this.deps.runtime.listContainers({ labels }, options),
    ]);
    return { sandboxes: sandboxes.map(({ id }) => id), containers };
  }

  /** Turns the runtime's events into wake-ups until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const audit = this.auditLoop(signal);
    for await (const event of this.deps.runtime.events({ signal })) {
      if (event.kind === "resync") {
        this.cache.invalidateAll();
        await this.resync(signal);
      } else await this.take(event, signal);
    }
    await audit;
  }

  /** Wakes the pod of the event, unless what it reports is known. */
  private async take(event: ContainerEvent, signal: AbortSignal): Promise<void> {
    const { id, type } = event;
    const uid = event.podUid ?? this.cache.ownerOf(id) ?? (await this.lookUpOwner(id, type, signal));
    if (uid === undefined || isKnown(event, this.cache.get(uid))) return;
    // Whoever started or removed it reads the pod next.
    if (type === "started" && this.cache.isOwnStart(id)) return;
    if (type === "deleted" && this.cache.isRemoved(uid, id)) return;
    if (type === "deleted") this.cache.invalidateOwner(id);
    if (type === "oom") this.cache.invalidateStatus(id);
    this.hooks.wake(uid);
  }

  /** Lists until it succeeds; the events that come meanwhile wait, and are covered by the list. */
  private async resync(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(LIST_RETRY);
    while (!signal.aborted) {
      try {
        this.hooks.listed((await this.listAll({ signal })).pods);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.deps.log.error("Failed to list runtime", error);
        await this.deps.clock.sleep(backoff.next(this.deps.clock.now()), { signal }).catch(() => undefined);
      }
    }
  }

  private async lookUpOwner(id: string, type: string, signal: AbortSignal): Promise<string | undefined> {
    if (type !== "stopped" && type !== "oom") return undefined;
    const found = await this.deps.runtime.listContainers({ id }, { signal }).catch(() => []);
    return found[0]?.labels[POD_UID_LABEL];
  }

  private async auditLoop(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await sleepLive(this.deps.clock, this.auditEveryMs, { signal });
        await this.audit({ signal });
      } catch (error) {
        if (signal.aborted) return;
        this.deps.log.error("Failed to audit runtime", error);
      }
    }
  }

  /** A pod whose state is not the listed one, and that is not read within a second, changed without an event. */
  private async audit(options: Abortable): Promise<void> {
    const { pods, stale } = await this.listAll(options);
    if (stale.length > 0) await this.deps.clock.sleep(EVENT_LATE_MS, options);
    for (const observed of stale) {
      if (this.cache.get(observed.uid) !== observed) continue;
      this.hooks.missed(observed.uid);
      this.cache.invalidate(observed.uid);
      // Nobody else reads a terminated pod: it would be found again by each audit.
      await this.read(observed, options).catch((error: unknown) => {
        options.signal.throwIfAborted();
        this.deps.log.error("Failed to read pod for audit", error, { pod: observed.name, podUID: observed.uid });
      });
    }
    this.hooks.listed(pods);
  }

  /** Lists the whole runtime. Answers its pods, and those whose cached state differs from the list. */
  private async listAll(options: Abortable): Promise<{ pods: Map<string, ListedPod>; stale: ObservedPod[] }> {
    const before = this.cache.ids();
    const began = this.deps.clock.now().mono;
    const [sandboxes, containers] = await Promise.all([
      this.deps.runtime.listSandboxes({}, options),
      this.deps.runtime.listContainers({}, options),
    ]);
    this.hooks.relisted?.(this.deps.clock.now().mono - began);
    const states = new Map<string, Map<string, string>>();
    const pods = new Map<string, ListedPod>();
    const parts: ListedPart[] = [];
    for (const { id, metadata, state, annotations } of sandboxes) {
      parts.push({ id, uid: metadata.uid });
      pods.set(metadata.uid, { name: metadata.name, namespace: metadata.namespace, annotations });
      put(states, metadata.uid, [id, state]);
    }
    for (const { id, labels, state } of containers) {
      const uid = labels[POD_UID_LABEL];
      if (uid === undefined) continue;
      parts.push({ id, uid });
      put(states, uid, [id, state]);
    }
    this.cache.storeList(parts, before);
    return { pods, stale: this.list().filter((observed) => differs(observed, states.get(observed.uid))) };
  }
}

/** True if the last read shows what the event reports already. */
function isKnown(event: ContainerEvent, known: ObservedPod | undefined): boolean {
  const { id, type } = event;
  const container = known?.containers.find((one) => one.id === id);
  const sandbox = known?.sandboxes.find((one) => one.id === id);
  switch (type) {
    case "created":
      return container !== undefined || sandbox !== undefined;
    case "started":
      return sandbox !== undefined || container?.state === "running" || container?.state === "exited";
    case "stopped":
      return (container !== undefined && isSettled(container)) || sandbox?.state === "notReady";
    case "deleted":
      return known !== undefined && container === undefined && sandbox === undefined;
    case "oom":
      return false;
  }
}

function isSettled({ state, isProvisional }: ObservedContainer): boolean {
  return state === "exited" && isProvisional !== true;
}

function differs(observed: ObservedPod, listed: ReadonlyMap<string, string> | undefined): boolean {
  const ids = idsOf(observed);
  if (ids.length !== (listed?.size ?? 0)) return true;
  const all = [...observed.sandboxes, ...observed.containers];
  return all.some(({ id, state }) => listed?.get(id) !== state);
}

function put(states: Map<string, Map<string, string>>, uid: string, [id, state]: [string, string]): void {
  const known = states.get(uid);
  if (known === undefined) states.set(uid, new Map([[id, state]]));
  else known.set(id, state);
}

async function orGone<T>(status: Promise<T>): Promise<T | undefined> {
  try {
    return await status;
  } catch (error) {
    if (error instanceof RuntimeError && error.code === "NotFound") return undefined;
    throw error;
  }
}

function isPresent<T>(value: T | undefined): value is T {
  return value !== undefined;
}

function toSandbox(status: SandboxStatus): ObservedSandbox {
  const { id, state, createdAt, hostNetwork, ips, metadata } = status;
  return { id, state, createdAt, hostNetwork, ips, attempt: metadata.attempt };
}

function toObserved(status: ContainerStatus, sandboxId: string): ObservedContainer {
  return { ...status, sandboxId, hash: status.annotations[CONTAINER_HASH_ANNOTATION] ?? "" };
}

function newestSandboxFirst(a: ObservedSandbox, b: ObservedSandbox): number {
  return b.attempt - a.attempt || b.createdAt - a.createdAt || (a.id < b.id ? -1 : 1);
}

function newestContainerFirst(a: ObservedContainer, b: ObservedContainer): number {
  return b.createdAt - a.createdAt || b.attempt - a.attempt || (a.id < b.id ? -1 : 1);
}
