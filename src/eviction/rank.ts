import type { Pod } from "../model/generated/types.ts";
import { isCriticalPod } from "../model/pod-facts.ts";
import { bytesOf, parseResources, podRequests } from "../model/resources.ts";
import { type Layout, SIGNALS, type Signal, type StarvedResource } from "./signals.ts";

/** Bytes and inodes on disk. */
export interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}

export interface ContainerConsumption {
  readonly name: string;
  /** Working set in bytes. */
  readonly memory?: number | undefined;
  readonly logs?: DiskUsage | undefined;
  /** The writable layer. */
  readonly layer?: DiskUsage | undefined;
}

/** What a pod takes of its node, as far as it was measured. */
export interface PodConsumption {
  /** Working set in bytes. */
  readonly memory?: number | undefined;
  readonly tasks?: number | undefined;
  readonly containers: readonly ContainerConsumption[];
  /** Local volumes on disk, and the pod's files beside them that its containers can write to. */
  readonly volumes: DiskUsage;
  /** Files that were deleted and are still open: on the node's filesystem, and in writable layers. */
  readonly deleted?: { readonly node: DiskUsage; readonly layers: DiskUsage } | undefined;
}

/** A pod in the order of eviction, with the numbers that put it there. */
export interface RankedPod {
  readonly pod: Pod;
  readonly priority: number;
  /** In bytes or pieces; undefined if it was not measured, which ranks first. */
  readonly usage: number | undefined;
  readonly request: number;
  readonly exceedsRequest: boolean;
  /** Never evicted, whatever its rank. */
  readonly isCritical: boolean;
}

/** What the pods take, by UID. */
export type Consumption = ReadonlyMap<string, PodConsumption>;

/**
 * The pods in the order in which they would be evicted for a signal: those that exceed their request first, then by
 * lower priority, then by usage above the request. For processes only priority and their number count. Pure.
 */
export function rankPods(
  signal: Signal,
  pods: readonly Pod[],
  { consumption, layout }: { readonly consumption: Consumption; readonly layout: Layout },
): readonly RankedPod[] {
  const { resource } = SIGNALS[signal];
  const counted = countedParts(signal, layout);
  const ranked = pods.map((pod): RankedPod => {
    const found = consumption.get(pod.metadata.uid ?? "");
    const usage = found && usageOf(found, resource, counted);
    const request = requestOf(pod, resource);
    const exceedsRequest = usage !== undefined && usage > request;
    return { pod, priority: pod.spec.priority ?? 0, usage, request, exceedsRequest, isCritical: isCriticalPod(pod) };
  });
  return ranked.sort(resource === "pids" ? byTasks : byExcess);
}

function byExcess(a: RankedPod, b: RankedPod): number {
  const excess = ({ usage, request }: RankedPod): number => (usage === undefined ? 0 : usage - request);
  return (
    yesFirst(a.usage === undefined, b.usage === undefined) ||
    yesFirst(a.exceedsRequest, b.exceedsRequest) ||
    a.priority - b.priority ||
    excess(b) - excess(a)
  );
}

function byTasks(a: RankedPod, b: RankedPod): number {
  if (a.priority !== b.priority) return a.priority - b.priority;
  if (a.usage === undefined || b.usage === undefined) return yesFirst(a.usage === undefined, b.usage === undefined);
  return b.usage - a.usage;
}

function yesFirst(a: boolean, b: boolean): number {
  return Number(b) - Number(a);
}

type DiskPart = "logs" | "layer" | "volumes";

/** The parts of a pod that are on the filesystem of a signal. */
function countedParts(signal: Signal, layout: Layout): readonly DiskPart[] {
  if (layout === "single") return ["logs", "layer", "volumes"];
  if (layout === "split") return signal.startsWith("imagefs.") ? [] : ["logs", "layer", "volumes"];
  return signal.startsWith("nodefs.") ? ["logs", "volumes"] : ["layer"];
}

/** Undefined if it was not measured. */
function usageOf(
  { memory, tasks, containers, volumes, deleted }: PodConsumption,
  resource: StarvedResource,
  counted: readonly DiskPart[],
): number | undefined {
  if (resource === "memory") return memory;
  if (resource === "pids") return tasks;
  const unit = resource === "inodes" ? "inodes" : "bytes";
  const part = (of: "logs" | "layer"): number =>
    counted.includes(of) ? containers.reduce((sum, container) => sum + (container[of]?.[unit] ?? 0), 0) : 0;
  const ofNode = counted.includes("volumes") ? volumes[unit] + (deleted?.node[unit] ?? 0) : 0;
  const ofLayers = counted.includes("layer") ? (deleted?.layers[unit] ?? 0) : 0;
  return part("logs") + part("layer") + ofNode + ofLayers;
}

/** Inodes and processes cannot be requested. Overhead counts only for a pod that requests something, as in Kubernetes. */
function requestOf(pod: Pod, resource: StarvedResource): number {
  if (resource !== "memory" && resource !== "ephemeral-storage") return 0;
  const { overhead, ...bare } = pod.spec;
  const request = bytesOf(podRequests({ ...pod, spec: bare }), resource) ?? 0;
  return request === 0 ? 0 : request + (bytesOf(parseResources(overhead), resource) ?? 0);
}
