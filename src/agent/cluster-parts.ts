import type { ImagePort, RuntimePort } from "../adapters/runtime/port.ts";
import type { agentOptions, DynamicConfiguration, OptionStore } from "../config/index.ts";
import type { EventSubject } from "../events/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Node, Pod } from "../model/generated/types.ts";
import { CONFIG_MIRROR_ANNOTATION } from "../model/labels.ts";
import { isMirrorPod, isStaticPod } from "../model/pod-facts.ts";
import type { PodEvent } from "../model/step.ts";
import type { DesiredPods, Journal, WorkerPool } from "../pods/index.ts";
import type { ApiPods, Snapshot } from "../sources/index.ts";
import type { MirrorSource, StatusSource } from "../status/index.ts";
import type { ClusterConnection } from "./connection.ts";

/** What the parts that face the cluster are built from. */
export interface ClusterDeps {
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  /** Undefined without `--dynamic-config-dir`. */
  readonly dynamic?: DynamicConfiguration | undefined;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
}

/** The ring, as far as the cluster looks at it. */
export interface ClusterRing {
  readonly desired: DesiredPods;
  readonly pool: WorkerPool;
  readonly journal: Journal;
  readonly runtime: Pick<RuntimePort, "status" | "version" | "setPodCidr">;
  readonly images: Pick<ImagePort, "listImages">;
  publish(snapshot: Snapshot): void;
}

/** A part that runs as long as the agent. */
export interface Loop {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** Whom an event is about; undefined for what is no object of the cluster, such as a manifest. */
export function subjectOf(event: PodEvent, pod: Pod | undefined, nodeName: string): EventSubject | undefined {
  const { uid, name, namespace } = event.pod;
  if (uid === "") {
    return name === nodeName ? { kind: "Node", namespace: "default", name, uid: nodeName } : undefined;
  }
  const fieldPath = event.container === undefined ? undefined : fieldPathOf(pod, event.container);
  return { kind: "Pod", namespace, name, uid, ...(fieldPath !== undefined && { fieldPath }) };
}

function fieldPathOf(pod: Pod | undefined, container: string): string {
  const has = (list: readonly { readonly name: string }[] | undefined): boolean =>
    list?.some(({ name }) => name === container) ?? false;
  if (has(pod?.spec.initContainers)) return `spec.initContainers{${container}}`;
  return has(pod?.spec.ephemeralContainers)
    ? `spec.ephemeralContainers{${container}}`
    : `spec.containers{${container}}`;
}

/** Pods as the writer of statuses sees them. */
export function statusSource({ pool, desired }: ClusterRing, pods: ApiPods): StatusSource {
  return {
    statusOf: (uid) => pool.status(uid),
    isFinished: (uid) => pool.isFinished(uid),
    copyOf: (uid) => {
      const pod = pool.worker(uid)?.pod ?? desired.get(uid)?.pod;
      const { name = "", namespace = "" } = pod?.metadata ?? {};
      const copy = pods.named(namespace, name);
      if (copy === undefined) return undefined;
      const owner = isMirrorPod(copy) ? copy.metadata.annotations?.[CONFIG_MIRROR_ANNOTATION] : copy.metadata.uid;
      return owner === uid ? copy : undefined;
    },
  };
}

/** Static pods and their mirrors. */
export function mirrorSource(
  { pool, desired }: ClusterRing,
  { pods, node }: { pods: ApiPods; node: () => Node | undefined },
): MirrorSource {
  return {
    node,
    mirror: (namespace, name) => {
      const found = pods.named(namespace, name);
      return found !== undefined && isMirrorPod(found) ? found : undefined;
    },
    staticPod: (namespace, name) => {
      if (!desired.allSourcesReady || !pods.hasSynced) return "waits";
      const is = ({ metadata }: Pod): boolean => metadata.namespace === namespace && metadata.name === name;
      const wanted = desired.list().find(({ pod }) => isStaticPod(pod) && is(pod));
      const holder = pool.uids().find((uid) => {
        const worker = pool.worker(uid);
        return worker !== undefined && is(worker.pod);
      });
      if (wanted === undefined) return holder === undefined ? undefined : "waits";
      return holder === wanted.uid || (holder === undefined && pool.status(wanted.uid) !== undefined)
        ? wanted.pod
        : "waits";
    },
  };
}
