import { ApiError, type KubeApi, PODS } from "../adapters/kubeapi/index.ts";
import { KeyedBackoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { KeyedQueue } from "../lib/keyed-queue.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod, PodStatus } from "../model/generated/types.ts";
import { isMirrorPod } from "../model/pod-facts.ts";
import { podStatusPatch, rememberSent, type SentPodStatus } from "./pod-status-patch.ts";

/** What the writer asks of the ring and of the server's pods. */
export interface StatusSource {
  /** The status of now, by the UID that the agent knows the pod under. */
  statusOf(uid: string): PodStatus | undefined;
  /** The server's copy of the pod: the pod itself, or the mirror of a static one. */
  copyOf(uid: string): Pod | undefined;
  /** True when nothing of the pod is left: containers, volumes and cgroups are gone. */
  isFinished(uid: string): boolean;
}

export interface StatusWriterDeps {
  readonly api: Pick<KubeApi, "patch" | "delete">;
  readonly pods: StatusSource;
  readonly clock: Clock;
  readonly log: Logger;
}

const RETRY = { initialMs: 200, maxMs: 10_000, jitter: 0.2 };

interface Sent extends SentPodStatus {
  readonly pod: Pod;
}

/**
 * Brings each pod's status to the server: one request at a time for a pod, always the newest status, only what changed.
 * Whoever wakes it tells nothing; it compares what is with what the server has. A pod that was asked to go and has
 * nothing left is removed there.
 */
export class StatusWriter {
  private readonly queue: KeyedQueue<string>;
  private readonly backoff = new KeyedBackoff<string>(RETRY);
  private readonly sent = new Map<string, Sent>();
  private readonly deleted = new Set<string>();

  constructor(private readonly deps: StatusWriterDeps) {
    this.queue = new KeyedQueue((uid, signal) => this.handle(uid, signal), {
      onError: (uid, error) => this.failed(uid, error),
    });
  }

  /** Something about this pod may have to be told. Cheap, and harmless when nothing has. */
  wake(uid: string): void {
    if (this.backoff.remaining(uid, this.deps.clock.now()) > 0) return;
    this.queue.wake(uid);
  }

  /** The pod is gone from the server, or from here. */
  forget(uid: string): void {
    this.sent.delete(uid);
    this.deleted.delete(uid);
    this.backoff.reset(uid);
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    await this.queue.close();
  }

  private async handle(uid: string, signal: AbortSignal): Promise<void> {
    const copy = this.deps.pods.copyOf(uid);
    if (copy === undefined) return;
    const server = this.newest(uid, copy);
    const status = this.deps.pods.statusOf(uid);
    const after = status === undefined ? server : await this.send(uid, { status, server }, signal);
    this.backoff.reset(uid);
    if (after !== undefined && this.mayDelete(uid, after)) await this.remove(uid, after, signal);
  }

  /** Our own last answer may be newer than what the watch has told. */
  private newest(uid: string, copy: Pod): Pod {
    const mine = this.sent.get(uid)?.pod;
    if (mine === undefined || mine.metadata.uid !== copy.metadata.uid) return copy;
    const [theirs, ours] = [copy.metadata.resourceVersion ?? "", mine.metadata.resourceVersion ?? ""];
    const isOlder = /^\d+$/.test(theirs) && /^\d+$/.test(ours) && BigInt(theirs) < BigInt(ours);
    return isOlder ? mine : copy;
  }

  /** The pod as the server has it afterwards; undefined when it has none any more. */
  private async send(
    uid: string,
    { status, server }: { readonly status: PodStatus; readonly server: Pod },
    signal: AbortSignal,
  ): Promise<Pod | undefined> {
    const last = this.sent.get(uid);
    const isSamePod = last?.pod.metadata.uid === server.metadata.uid;
    const patch = podStatusPatch(status, { status: server.status, last: isSamePod ? last : undefined });
    if (patch === undefined) return server;
    const { name = "", namespace = "", uid: serverUid } = server.metadata;
    const body = { metadata: { uid: serverUid }, status: patch };
    try {
      const pod = await this.deps.api.patch(
        PODS,
        { namespace, name, type: "strategic", subresource: "status", body },
        { signal },
      );
      const told = { status, answer: pod.status ?? {}, last: isSamePod ? last : undefined };
      this.sent.set(uid, { ...rememberSent(patch, told), pod });
      return pod;
    } catch (error) {
      // Gone, or another pod has the name by now: there is nobody to tell.
      if (error instanceof ApiError && (error.code === "NotFound" || error.code === "Conflict")) return undefined;
      throw error;
    }
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

  /** With finalizers the object stays a while; it is not asked for again. */
  private async remove(uid: string, pod: Pod, signal: AbortSignal): Promise<void> {
    const { name = "", namespace = "", uid: serverUid = "" } = pod.metadata;
    try {
      await this.deps.api.delete(PODS, { namespace, name, uid: serverUid, graceSeconds: 0 }, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== "NotFound" && error.code !== "Conflict")) throw error;
    }
    this.deleted.add(uid);
  }

  private failed(uid: string, error: unknown): void {
    const { clock, log, pods } = this.deps;
    const waitMs = this.backoff.next(uid, clock.now());
    const name = pods.copyOf(uid)?.metadata.name ?? "";
    log.warn("the status of a pod could not be sent", {
      pod: name,
      error: messageOf(error),
      waitMs: Math.round(waitMs),
    });
    clock.after(waitMs, () => this.queue.wake(uid));
  }
}
