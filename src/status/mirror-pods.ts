import { ApiError, type KubeApi, PODS } from "../adapters/kubeapi/index.ts";
import { KeyedBackoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { KeyedQueue } from "../lib/keyed-queue.ts";
import type { Logger } from "../lib/log.ts";
import type { Node, Pod } from "../model/generated/types.ts";
import { CONFIG_HASH_ANNOTATION, CONFIG_MIRROR_ANNOTATION } from "../model/labels.ts";

const RETRY = { initialMs: 500, maxMs: 30_000, jitter: 0.2 };

/** The static pods, and their mirrors on the API server. */
export interface MirrorSource {
  /**
   * The running static pod of this name; `waits` if an earlier version still holds the name, or the sources have not
   * synced yet; undefined if there is no such pod.
   */
  staticPod(namespace: string, name: string): Pod | "waits" | undefined;
  /** The mirror pod of this name on the API server. */
  mirror(namespace: string, name: string): Pod | undefined;
  /** Undefined until the node is registered. */
  node(): Node | undefined;
}

export interface MirrorPodsDeps {
  readonly api: Pick<KubeApi, "create" | "delete">;
  readonly pods: MirrorSource;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Syncs the mirror pods of static pods. What happens to a mirror never affects the static pod. */
export class MirrorPods {
  private readonly queue: KeyedQueue<string>;
  private readonly backoff = new KeyedBackoff<string>(RETRY);

  constructor(private readonly deps: MirrorPodsDeps) {
    this.queue = new KeyedQueue((key, signal) => this.handle(key, signal), {
      onError: (key, error) => {
        deps.log.warn("Failed to sync mirror pod", { pod: key, error: messageOf(error) });
        this.retry(key);
      },
    });
  }

  /** A static pod, or the mirror of one, may have changed. */
  wake({ metadata }: Pod): void {
    this.queue.wake(`${metadata.namespace ?? ""}/${metadata.name ?? ""}`);
  }

  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    await this.queue.close();
  }

  private async handle(key: string, signal: AbortSignal): Promise<void> {
    const { pods } = this.deps;
    const [namespace = "", name = ""] = key.split("/");
    const wanted = pods.staticPod(namespace, name);
    if (wanted === "waits") return;
    const mirror = pods.mirror(namespace, name);
    const step = mirrorStep(wanted, mirror);
    if (step === "keep") return;
    const isKnown = step === "create" || mirror === undefined || (await this.remove(mirror, signal));
    if (step !== "delete" && wanted !== undefined) await this.create(wanted, signal);
    if (isKnown || pods.mirror(namespace, name) === undefined) this.backoff.reset(key);
    else this.retry(key);
  }

  private retry(key: string): void {
    const { clock } = this.deps;
    clock.after(this.backoff.next(key, clock.now()), () => this.queue.wake(key));
  }

  private async create(pod: Pod, signal: AbortSignal): Promise<void> {
    const node = this.deps.pods.node();
    if (node?.metadata.uid === undefined || node.metadata.deletionTimestamp !== undefined) return;
    const object = mirrorOf(pod, { name: node.metadata.name ?? "", uid: node.metadata.uid });
    try {
      await this.deps.api.create(PODS, { namespace: pod.metadata.namespace ?? "", object }, { signal });
    } catch (error) {
      // Created a moment ago, and the watch has not delivered it yet.
      if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
    }
  }

  /** False if the server does not know it: it is gone, or the server has just started and not loaded it yet. */
  private async remove({ metadata }: Pod, signal: AbortSignal): Promise<boolean> {
    const { namespace = "", name = "", uid = "" } = metadata;
    try {
      await this.deps.api.delete(PODS, { namespace, name, uid, graceSeconds: 0 }, { signal });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== "NotFound" && error.code !== "Conflict")) throw error;
      return false;
    }
  }
}

/** Returns the action that a mirror needs. Pure. */
export function mirrorStep(wanted: Pod | undefined, mirror: Pod | undefined): "keep" | "create" | "delete" | "replace" {
  if (wanted === undefined) return mirror === undefined ? "keep" : "delete";
  if (mirror === undefined) return "create";
  const hash = wanted.metadata.annotations?.[CONFIG_HASH_ANNOTATION];
  const isSame = mirror.metadata.annotations?.[CONFIG_MIRROR_ANNOTATION] === hash;
  return isSame && mirror.metadata.deletionTimestamp === undefined ? "keep" : "replace";
}

/** Returns the mirror pod of a static pod. Pure. */
export function mirrorOf(pod: Pod, node: { readonly name: string; readonly uid: string }): Pod {
  const { uid: _uid, annotations = {}, ...metadata } = pod.metadata;
  const owner = { apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid, controller: true };
  const { status: _status, ...rest } = pod;
  return {
    ...rest,
    metadata: {
      ...metadata,
      annotations: { ...annotations, [CONFIG_MIRROR_ANNOTATION]: annotations[CONFIG_HASH_ANNOTATION] ?? "" },
      ownerReferences: [owner],
    },
  };
}
