import { type ApiError, type KubeApi, type ObjectChange, PODS, Reflector } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { CONFIG_SEEN_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from "../model/labels.ts";
import { isMirrorPod } from "../model/pod-facts.ts";
import type { Snapshot } from "./snapshot.ts";

export interface ApiPodsDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly node: NodeForPods;
  publish(snapshot: Snapshot): void;
  /** Called with each version that the server delivers, and with the last one of a deleted pod. */
  seen(pod: Pod, isDeleted: boolean): void;
}

/** The Node object, by whose labels pods are admitted. */
export interface NodeForPods {
  /** Resolves when the Node object was read, or is known not to exist. */
  readonly synced: Promise<void>;
  /** True if the pod's node selector or affinity does not match the labels that are known. */
  mismatches(pod: Pod): boolean;
  /** Fetches the Node object; resolves even if that fails. */
  refetch(options: Abortable): Promise<void>;
}

interface KnownPod {
  readonly pod: Pod;
  /** The fields that workers act on, as text: a pod of which only the status changed has the same. */
  readonly text: string;
}

/**
 * The pods that are bound to this node. A snapshot is published only if something changed that workers act on, never for
 * the echo of our own status. As in Kubernetes, no pod is published before the Node object is known, and a pod that does
 * not match the node's labels not before these were fetched again.
 */
export class ApiPods {
  private readonly reflector: Reflector<Pod>;
  /** By UID, as workers get them. */
  private readonly wanted = new Map<string, KnownPod>();
  /** UIDs of pods that wait for the newest labels of the node. */
  private readonly held = new Set<string>();
  /** UIDs of pods that were published from a checkpoint: to hold these would end them. */
  private readonly offline = new Set<string>();
  private isPublishing = false;
  private isListed = false;
  private isReady = false;
  private signal = AbortSignal.abort();
  private error: ApiError | undefined;

  constructor(
    private readonly deps: ApiPodsDeps,
    options: { readonly nodeName: string },
  ) {
    this.reflector = new Reflector(deps, {
      resource: PODS,
      select: { fieldSelector: `spec.nodeName=${options.nodeName}` },
      firstList: "latest",
      onChange: (change) => this.changed(change),
      onSync: () => {
        this.isListed = true;
        void this.becomeReady();
      },
      onError: (error) => this.failed(error),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    this.signal = signal;
    return this.reflector.run({ signal });
  }

  /** True once the pods of this node were listed and the Node object is known. */
  get hasSynced(): boolean {
    return this.isReady;
  }

  /** True if the pods could not be listed yet, because the server is unavailable. */
  get isUnavailable(): boolean {
    return !this.isListed && this.error?.isRetryable === true;
  }

  /** The pods as workers get them, but with the status that the server has now. */
  current(): readonly Pod[] {
    return [...this.wanted.values()].map(({ pod }) => {
      const { namespace = "", name = "", uid } = pod.metadata;
      const copy = this.named(namespace, name);
      return copy?.status !== undefined && copy.metadata.uid === uid ? { ...pod, status: copy.status } : pod;
    });
  }

  /** Publishes the pods of a checkpoint until the server has listed its own, which may be more. */
  startOffline(pods: readonly Pod[]): void {
    if (this.isReady) return;
    for (const { metadata } of pods) this.offline.add(metadata.uid ?? "");
    const kept = pods.map((pod) => ({ pod, warnings: [] }));
    this.deps.publish({ source: "api", pods: kept, objects: [], isIncomplete: true });
  }

  /** The server's copy under this name, mirrors included. */
  named(namespace: string, name: string): Pod | undefined {
    return this.reflector.objects.get(`${namespace}/${name}`);
  }

  all(): Iterable<Pod> {
    return this.reflector.objects.values();
  }

  private changed(change: ObjectChange<Pod>): void {
    const { object } = change;
    const uid = object.metadata.uid ?? "";
    const isDeleted = change.kind === "deleted";
    if (!isMirrorPod(object)) {
      if (!isDeleted) this.take(uid, object);
      else if (this.wanted.delete(uid)) this.soon();
    }
    this.deps.seen(object, isDeleted);
  }

  private async becomeReady(): Promise<void> {
    await this.deps.node.synced;
    this.isReady = true;
    for (const [uid, { pod }] of this.wanted) this.holdIfMismatched(uid, pod);
    this.soon();
  }

  /** The labels that are known may be older than those that the scheduler used. */
  private holdIfMismatched(uid: string, pod: Pod): void {
    if (!this.isReady || this.held.has(uid) || this.offline.has(uid) || !this.deps.node.mismatches(pod)) return;
    this.held.add(uid);
    void this.deps.node.refetch({ signal: this.signal }).finally(() => {
      this.held.delete(uid);
      this.soon();
    });
  }

  private take(uid: string, pod: Pod): void {
    const known = this.wanted.get(uid);
    if (known === undefined) this.holdIfMismatched(uid, pod);
    const text = relevantText(pod);
    if (known?.text === text) return;
    const seen = known?.pod.metadata.annotations?.[CONFIG_SEEN_ANNOTATION] ?? nanoTime(this.deps.clock.now().wall);
    const annotations = {
      ...pod.metadata.annotations,
      [CONFIG_SOURCE_ANNOTATION]: "api",
      [CONFIG_SEEN_ANNOTATION]: seen,
    };
    this.wanted.set(uid, { pod: { ...pod, metadata: { ...pod.metadata, annotations } }, text });
    this.soon();
  }

  /** Publishes one snapshot for all changes of this turn: a list delivers pod by pod. */
  private soon(): void {
    if (this.isPublishing) return;
    this.isPublishing = true;
    queueMicrotask(() => {
      this.isPublishing = false;
      if (!this.isReady) return;
      const shown = [...this.wanted].filter(([uid]) => !this.held.has(uid));
      const pods = shown.map(([, { pod }]) => ({ pod, warnings: [] }));
      this.deps.publish({ source: "api", pods, objects: [], isIncomplete: this.held.size > 0 });
    });
  }

  private failed(error: ApiError): void {
    this.error = error;
    this.deps.log.warn("Failed to watch pods", { code: error.code, error: error.message });
  }
}

/** Returns everything but the status and the version; of the status only readiness gates and the names of claims. */
function relevantText({ metadata, spec, status }: Pod): string {
  const gates = new Set(spec.readinessGates?.map(({ conditionType }) => conditionType));
  const conditions = gates.size === 0 ? [] : status?.conditions?.filter(({ type }) => gates.has(type));
  const { labels, annotations, deletionTimestamp, deletionGracePeriodSeconds, generation } = metadata;
  return JSON.stringify([
    labels,
    annotations,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    generation,
    spec,
    conditions,
    status?.resourceClaimStatuses,
    status?.extendedResourceClaimStatus,
  ]);
}

/** RFC 3339 with nanoseconds. */
function nanoTime(wall: number): string {
  return new Date(wall).toISOString().replace("Z", "000000Z");
}
