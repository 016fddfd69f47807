import type { KubeApi } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Node, Pod, PodStatus } from "../model/generated/types.ts";
import { CONFIG_MIRROR_ANNOTATION } from "../model/labels.ts";
import { isMirrorPod, isStaticPod } from "../model/pod-facts.ts";
import { MirrorPods, type MirrorSource } from "./mirror-pods.ts";
import { statusMetrics } from "./status-metrics.ts";
import { type StatusSource, StatusWriter } from "./status-writer.ts";

/** The pods that have a worker. */
export interface WorkedPods {
  readonly hasWaiting: boolean;
  uids(): readonly string[];
  worker(uid: string): { readonly pod: Pod } | undefined;
  status(uid: string): PodStatus | undefined;
  isFinished(uid: string): boolean;
  onStatus(fn: (uid: string) => void, options: Abortable): void;
}

/** The pods of all sources. */
export interface ListedPods {
  readonly allSourcesReady: boolean;
  /** False while a source may want pods that it cannot name. */
  readonly isComplete: boolean;
  get(uid: string): { readonly pod: Pod } | undefined;
  list(): readonly { readonly uid: string; readonly pod: Pod }[];
}

/** The pods of this node on the API server. */
export interface ServerPods {
  readonly hasSynced: boolean;
  named(namespace: string, name: string): Pod | undefined;
  all(): Iterable<Pod>;
}

export interface PodStatusDeps {
  readonly api: Pick<KubeApi, "create" | "patch" | "delete">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly pool: WorkedPods;
  readonly desired: ListedPods;
  readonly pods: ServerPods;
  readonly node: { readonly current: Node | undefined; onNode(fn: (node: Node) => void, options: Abortable): void };
}

/** The status of pods and the mirrors of static pods on the API server. */
export interface PodStatuses {
  readonly loops: readonly Loop[];
  /** The API server's copy of a pod changed or was deleted. */
  seen(pod: Pod, isDeleted: boolean): void;
  /** The desired pods changed: mirrors without their static pod are deleted. */
  desiredChanged(): void;
}

/** Connects the writers of pod statuses and mirror pods with the pods. */
export function composePodStatuses(deps: PodStatusDeps, { signal }: Abortable): PodStatuses {
  const { api, clock, log, metrics, pool, pods } = deps;
  const status = new StatusWriter({
    api,
    clock,
    log,
    pods: statusSource(deps),
    isBusy: () => pool.hasWaiting,
    measured: statusMetrics(metrics, () => pods.all()),
  });
  const mirrors = new MirrorPods({ api, clock, log, pods: mirrorSource(deps) });
  followStatuses(deps, { status, mirrors }, signal);
  return {
    loops: [
      { name: "pod status", run: (stop) => status.run(stop) },
      { name: "mirror pods", run: (stop) => mirrors.run(stop) },
    ],
    seen: (pod, isDeleted) => {
      if (isMirrorPod(pod)) mirrors.wake(pod);
      const uid = staticUidOf(pod) ?? "";
      if (isDeleted) status.forget(uid);
      else status.wake(uid);
    },
    desiredChanged: () => {
      for (const pod of pods.all()) if (isMirrorPod(pod)) mirrors.wake(pod);
    },
  };
}

/** The UID under which the agent knows the pod: that of the static pod for its mirror. */
function staticUidOf(pod: Pod): string | undefined {
  return isMirrorPod(pod) ? pod.metadata.annotations?.[CONFIG_MIRROR_ANNOTATION] : pod.metadata.uid;
}

/** Pods as the writer of statuses sees them. */
function statusSource({ pool, desired, pods }: PodStatusDeps): StatusSource {
  return {
    statusOf: (uid) => pool.status(uid),
    isFinished: (uid) => pool.isFinished(uid),
    copyOf: (uid) => {
      const pod = pool.worker(uid)?.pod ?? desired.get(uid)?.pod;
      const { name = "", namespace = "" } = pod?.metadata ?? {};
      const copy = pods.named(namespace, name);
      return copy !== undefined && staticUidOf(copy) === uid ? copy : undefined;
    },
  };
}

/** Static pods and their mirrors. */
function mirrorSource({ pool, desired, pods, node }: PodStatusDeps): MirrorSource {
  /** Names of static pods that were listed since the agent started: only of these it is known that they were removed. */
  const listedOnce = new Set<string>();
  return {
    node: () => node.current,
    mirror: (namespace, name) => {
      const found = pods.named(namespace, name);
      return found !== undefined && isMirrorPod(found) ? found : undefined;
    },
    staticPod: (namespace, name) => {
      if (!desired.allSourcesReady || !pods.hasSynced) return "waits";
      const isNamed = ({ metadata }: Pod): boolean => metadata.namespace === namespace && metadata.name === name;
      const listed = desired.list().find(({ pod }) => isStaticPod(pod) && isNamed(pod));
      const holder = pool.uids().find((uid) => {
        const worker = pool.worker(uid);
        return worker !== undefined && isNamed(worker.pod);
      });
      const key = `${namespace}/${name}`;
      if (listed !== undefined) listedOnce.add(key);
      // Its manifest may be the one that is still being read: the mirror of a running pod is not deleted meanwhile.
      else if (holder !== undefined || (!desired.isComplete && !listedOnce.has(key))) return "waits";
      else return undefined;
      return holder === listed.uid || (holder === undefined && pool.status(listed.uid) !== undefined)
        ? listed.pod
        : "waits";
    },
  };
}

/** Wakes the writers at each changed status, and the mirrors when the node is another one. */
function followStatuses(
  { pool, desired, node }: PodStatusDeps,
  { status, mirrors }: { readonly status: StatusWriter; readonly mirrors: MirrorPods },
  signal: AbortSignal,
): void {
  /** Static pods by UID: once the worker is gone, nothing else knows the name. */
  const known = new Map<string, Pod>();
  pool.onStatus(
    (uid) => {
      const pod = pool.worker(uid)?.pod ?? desired.get(uid)?.pod ?? known.get(uid);
      if (pod !== undefined && isStaticPod(pod)) {
        if (pool.worker(uid) === undefined) known.delete(uid);
        else known.set(uid, pod);
        mirrors.wake(pod);
      }
      status.wake(uid);
    },
    { signal },
  );
  let nodeUid: string | undefined;
  node.onNode(
    ({ metadata }) => {
      if (metadata.uid === nodeUid) return;
      nodeUid = metadata.uid;
      for (const { pod } of desired.list()) if (isStaticPod(pod)) mirrors.wake(pod);
    },
    { signal },
  );
}
