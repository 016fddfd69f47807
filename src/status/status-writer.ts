import { ApiError, type KubeApi, PODS } from "../adapters/kubeapi/index.ts";
import { KeyedBackoff } from "../lib/backoff.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { KeyedQueue } from "../lib/keyed-queue.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod, PodStatus } from "../model/generated/types.ts";
import { isMirrorPod } from "../model/pod-facts.ts";
import { podStatusPatch, rememberSent, type SentPodStatus } from "./pod-status-patch.ts";

/** What the writer needs of the pods here and on the API server. */
export interface StatusSource {
  /** The current status, by the UID that the agent knows the pod under. */
  statusOf(uid: string): PodStatus | undefined;
  /** The server's copy of the pod: the pod itself, or the mirror of a static one. */
  copyOf(uid: string): Pod | undefined;
  /** True if containers, volumes and cgroups of the pod are removed. */
  isFinished(uid: string): boolean;
}

export interface StatusWriterDeps {
  readonly api: Pick<KubeApi, "patch" | "delete">;
  readonly pods: StatusSource;
  readonly clock: Clock;
  readonly log: Logger;
  /** True while pods wait in the start queue: their start takes precedence. */
  isBusy?(): boolean;
  /** Called with the time from the first change of a status to its update on the server. */
  measured?(tookMs: number): void;
}

/**
 * How long the update of a starting pod may wait for further changes, in milliseconds: most starts are over by then.
 * While pods wait in the start queue it is longer.
 */
const GATHER_MS = 500;
const GATHER_TURNS = 20;
const USUAL_WAITS = new Set(["ContainerCreating", "PodInitializing"]);
const RETRY = { initialMs: 200, maxMs: 10_000, jitter: 0.2 };

interface Sent extends SentPodStatus {
  readonly pod: Pod;
}

/**
 * Publishes the status of pods: one request at a time per pod, always the newest status, only what changed. A wake-up
 * carries no facts; the writer compares the current status with the server's. A terminating pod of which nothing is left
 * is deleted there.
 */
export class StatusWriter {
  private readonly queue: KeyedQueue<string>;
  private readonly backoff = new KeyedBackoff<string>(RETRY);
  private readonly sent = new Map<string, Sent>();
  private readonly deleted = new Set<string>();
  /** Pods whose update is on its way; one that is forgotten meanwhile is not remembered when the response arrives. */
  private readonly sending = new Set<string>();
  /** Pods whose update waits for further changes; without a timer the wait is over. */
  private readonly gathering = new Map<string, Timer | undefined>();
  /** Monotonic time of the first change that is not on the server yet, by UID. */
  private readonly since = new Map<string, number>();

  constructor(private readonly deps: StatusWriterDeps) {
    this.queue = new KeyedQueue((uid, signal) => this.handle(uid, signal), {
      onError: (uid, error) => this.failed(uid, error),
    });
  }

  /** The status of this pod may have changed. Cheap, and harmless if it has not. */
  wake(uid: string): void {
    if (!this.since.has(uid)) this.since.set(uid, this.deps.clock.now().mono);
    if (this.backoff.remaining(uid, this.deps.clock.now()) > 0) return;
    this.queue.wake(uid);
  }

  /** The pod is deleted on the server, or gone from here. */
  forget(uid: string): void {
    this.sent.delete(uid);
    this.gathered(uid);
    this.deleted.delete(uid);
    this.sending.delete(uid);
    this.backoff.reset(uid);
    this.since.delete(uid);
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (const uid of [...this.gathering.keys()]) this.gathered(uid);
    await this.queue.close();
  }

  private async handle(uid: string, signal: AbortSignal): Promise<void> {
    const since = this.since.get(uid);
    const copy = this.deps.pods.copyOf(uid);
    if (copy === undefined) return void this.since.delete(uid);
    const server = this.newest(uid, copy);
    const status = this.deps.pods.statusOf(uid);
    // A change during the request is measured on its own.
    this.since.delete(uid);
    try {
      const after = status === undefined ? server : await this.sendOrWait(uid, { status, server, since }, signal);
      if (after !== undefined && this.mayDelete(uid, after)) await this.remove(uid, after, signal);
      this.backoff.reset(uid);
    } catch (error) {
      if (!isUnknown(error)) throw error;
      this.checkAgain(uid);
    }
  }

  /**
   * The server did not know the pod. It is gone when the watch reports its deletion, which ends this: a server that has
   * just started answers so for pods that it has not loaded yet.
   */
  private checkAgain(uid: string): void {
    const { clock, pods } = this.deps;
    if (pods.copyOf(uid) === undefined) return;
    clock.after(this.backoff.next(uid, clock.now()), () => this.queue.wake(uid));
  }

  /** The response of our last patch may be newer than what the watch has delivered. */
  private newest(uid: string, copy: Pod): Pod {
    const mine = this.sent.get(uid)?.pod;
    if (mine === undefined || mine.metadata.uid !== copy.metadata.uid) return copy;
    const [theirs, ours] = [copy.metadata.resourceVersion ?? "", mine.metadata.resourceVersion ?? ""];
    const isOlder = /^\d+$/.test(theirs) && /^\d+$/.test(ours) && BigInt(theirs) < BigInt(ours);
    return isOlder ? mine : copy;
  }

  private async sendOrWait(
    uid: string,
    { status, server, since }: { readonly status: PodStatus; readonly server: Pod; readonly since: number | undefined },
    signal: AbortSignal,
  ): Promise<Pod | undefined> {
    try {
      const after = await this.send(uid, { status, server }, signal);
      const isSent = after !== undefined && after !== server;
      if (isSent && since !== undefined) this.deps.measured?.(this.deps.clock.now().mono - since);
      return after;
    } catch (error) {
      if (since !== undefined) this.since.set(uid, since);
      throw error;
    }
  }

  /** Returns the pod that the server has afterwards; undefined if it was forgotten meanwhile. */
  private async send(
    uid: string,
    { status, server }: { readonly status: PodStatus; readonly server: Pod },
    signal: AbortSignal,
  ): Promise<Pod | undefined> {
    const last = this.sent.get(uid);
    const isSamePod = last?.pod.metadata.uid === server.metadata.uid;
    const patch = podStatusPatch(status, { status: server.status, last: isSamePod ? last : undefined });
    if (patch === undefined || this.gathers(uid, status, server)) return server;
    this.gathered(uid);
    const { name = "", namespace = "", uid: serverUid } = server.metadata;
    const body = { metadata: { uid: serverUid }, status: patch };
    this.sending.add(uid);
    try {
      const pod = await this.deps.api.patch(
        PODS,
        { namespace, name, type: "strategic", subresource: "status", body },
        { signal },
      );
      if (!this.sending.has(uid)) return undefined;
      const told = { status, answer: pod.status ?? {}, last: isSamePod ? last : undefined };
      this.sent.set(uid, { ...rememberSent(patch, told), pod });
      return pod;
    } finally {
      this.sending.delete(uid);
    }
  }

  /** True while the update can wait: in a burst of starts each request takes time from the starts. */
  private gathers(uid: string, status: PodStatus, server: Pod): boolean {
    if (!isUsualStart(status, server)) return false;
    if (this.gathering.has(uid)) return this.gathering.get(uid) !== undefined;
    this.gather(uid, GATHER_TURNS);
    return true;
  }

  private gather(uid: string, turns: number): void {
    const timer = this.deps.clock.after(GATHER_MS, () => {
      if (turns > 1 && this.deps.isBusy?.() === true) return this.gather(uid, turns - 1);
      this.gathering.set(uid, undefined);
      this.queue.wake(uid);
    });
    this.gathering.set(uid, timer);
  }

  private gathered(uid: string): void {
    this.gathering.get(uid)?.cancel();
    this.gathering.delete(uid);
  }

  private mayDelete(uid: string, pod: Pod): boolean {
    const { phase } = pod.status ?? {};
    return (
      pod.metadata.deletionTimestamp !== undefined &&
      !isMirrorPod(pod) &&
      (phase === "Succeeded" || phase === "Failed") &&
      !this.deleted.has(uid) &&
      this.deps.pods.isFinished(uid)
    );
  }

  /** With finalizers the object stays a while; it is not deleted again. */
  private async remove(uid: string, pod: Pod, signal: AbortSignal): Promise<void> {
    const { name = "", namespace = "", uid: serverUid = "" } = pod.metadata;
    // Before the request: the pod may be forgotten while it runs.
    this.deleted.add(uid);
    try {
      await this.deps.api.delete(PODS, { namespace, name, uid: serverUid, graceSeconds: 0 }, { signal });
    } catch (error) {
      this.deleted.delete(uid);
      throw error;
    }
  }

  private failed(uid: string, error: unknown): void {
    const { clock, log, pods } = this.deps;
    const waitMs = this.backoff.next(uid, clock.now());
    const name = pods.copyOf(uid)?.metadata.name ?? "";
    log.warn("Failed to update pod status", {
      pod: name,
      error: messageOf(error),
      waitMs: Math.round(waitMs),
    });
    clock.after(waitMs, () => this.queue.wake(uid));
  }
}

/** True if the server answered that there is no such pod, or that another one has the name by now. */
function isUnknown(error: unknown): boolean {
  return error instanceof ApiError && (error.code === "NotFound" || error.code === "Conflict");
}

/** True if the status only says that the pod is starting. */
function isUsualStart(status: PodStatus, { metadata, status: known }: Pod): boolean {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  if (status.phase !== "Pending" || (known?.phase ?? "Pending") !== "Pending") return false;
  if (metadata.deletionTimestamp !== undefined || status.reason !== undefined) return false;
  return all.every(({ state }) => state?.waiting !== undefined && USUAL_WAITS.has(state.waiting.reason ?? ""));
}
