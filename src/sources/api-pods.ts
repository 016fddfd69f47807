import { type ApiError, type KubeApi, type ObjectChange, PODS, Reflector } from "../adapters/kubeapi/index.ts";
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
  publish(snapshot: Snapshot): void;
  /** Every version that the server tells of, and the last one of a pod that is gone. */
  seen(pod: Pod, isGone: boolean): void;
}

interface Known {
  readonly pod: Pod;
  /** All that matters to the pod's worker, to tell a new status from a new pod. */
  readonly text: string;
}

/**
 * The pods that are bound to this node. What the workers see changes only when something changed that they act on: the
 * echo of our own status never wakes anybody.
 */
export class ApiPods {
  private readonly reflector: Reflector<Pod>;
  /** By UID; as workers want them. */
  private readonly wanted = new Map<string, Known>();
  private isPublishing = false;
  private isReady = false;
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
        this.isReady = true;
        this.soon();
      },
      onError: (error) => this.failed(error),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.reflector.run({ signal });
  }

  /** True once the server has told of every pod of this node. */
  get hasSynced(): boolean {
    return this.isReady;
  }

  /** True when the server has not told of its pods yet, because it cannot be reached. */
  get isAway(): boolean {
    return !this.isReady && this.error?.isRetryable === true;
  }

  /** The pods as workers see them. */
  current(): readonly Pod[] {
    return [...this.wanted.values()].map(({ pod }) => pod);
  }

  /** Runs what an earlier agent kept until the server tells what it wants: it may want more than these. */
  startWithout(pods: readonly Pod[]): void {
    if (this.isReady) return;
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
    const isGone = change.kind === "deleted";
    if (!isMirrorPod(object)) {
      if (!isGone) this.take(uid, object);
      else if (this.wanted.delete(uid)) this.soon();
    }
    this.deps.seen(object, isGone);
  }

  private take(uid: string, pod: Pod): void {
    const known = this.wanted.get(uid);
    const text = whatMatters(pod);
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

  /** After the changes that come together: a list tells of each pod, and one snapshot is enough for them all. */
  private soon(): void {
    if (this.isPublishing) return;
    this.isPublishing = true;
    queueMicrotask(() => {
      this.isPublishing = false;
      if (!this.isReady) return;
      const pods = [...this.wanted.values()].map(({ pod }) => ({ pod, warnings: [] }));
      this.deps.publish({ source: "api", pods, objects: [], isIncomplete: false });
    });
  }

  private failed(error: ApiError): void {
    this.error = error;
    this.deps.log.warn("the pods of this node cannot be watched", { code: error.code, error: error.message });
  }
}

/** Everything but the status and the version; of the status only what readiness gates ask for. */
function whatMatters({ metadata, spec, status }: Pod): string {
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
  ]);
}

/** RFC 3339 with nine digits of a second. */
function nanoTime(wall: number): string {
  return new Date(wall).toISOString().replace("Z", "000000Z");
}
