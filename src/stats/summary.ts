import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import type { FilesystemSpace, InterfaceUsage, MemoryUsage, VolumeSpace } from "../model/usage.ts";
import type {
  ContainerSample,
  FilesystemSamples,
  NodeSample,
  PodSample,
  SystemSample,
  UsageSample,
} from "./samples.ts";

/** What the summary is made from. */
export interface SummaryFacts {
  readonly nodeName: string;
  readonly memoryBytes: number;
  /** Start of the agent, in wall-clock milliseconds. */
  readonly agentStartedAt: number;
  readonly node: NodeSample;
  readonly pods: Iterable<PodSample>;
  readonly onlyCpuAndMemory: boolean;
  /** What pods keep on disk, by UID. */
  readonly storage?: ReadonlyMap<string, PodStorage>;
  /** The filesystem at the path of a volume. */
  spaceAt?(path: string): VolumeSpace | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/** The interface whose numbers stand for all. */
const DEFAULT_INTERFACE = "eth0";
const NO_STALL = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
/** Where the kernel does not measure it (cgroup v1): clients of the original find the field there, too. */
const UNKNOWN_PRESSURE = { full: NO_STALL, some: NO_STALL };

/** The summary in the shape of `stats/v1alpha1`. Pure. */
export function summaryOf(facts: SummaryFacts): Json {
  return { node: nodeStats(facts), pods: Array.from(facts.pods, (pod) => podStats(pod, facts)) };
}

function nodeStats(facts: SummaryFacts): Json {
  const { node } = facts;
  const { usage, disks, tasks } = node;
  const time = timeOf(usage.at.wall);
  const limited: UsageSample = usage.memory
    ? { ...usage, memory: { ...usage.memory, limit: facts.memoryBytes } }
    : usage;
  const base = {
    nodeName: facts.nodeName,
    systemContainers: node.system.map((sample) => systemStats(sample, facts)),
    startTime: timeOf(node.bootedAt),
    ...cpuAndMemory(limited),
  };
  const swap = {
    swap: { time, swapAvailableBytes: node.swap.free, swapUsageBytes: node.swap.total - node.swap.free },
  };
  if (facts.onlyCpuAndMemory) return { ...base, ...swap };
  return {
    ...base,
    ...ioStats(usage),
    network: networkStats(time, node.network),
    ...(disks.node && { fs: fsStats(disks.at.wall, disks.node, usedOf(disks.node)) }),
    runtime: runtimeStats(disks),
    ...(tasks && { rlimit: { time, maxpid: tasks.most, curproc: tasks.running } }),
    ...swap,
  };
}

function runtimeStats(disks: FilesystemSamples): Json {
  const { at, image, container = image, imageBytes = 0, imageInodes = 0 } = disks;
  const { containerBytes = imageBytes, containerInodes = imageInodes } = disks;
  if (image === undefined || container === undefined) return {};
  return {
    imageFs: fsStats(at.wall, image, { usedBytes: imageBytes, inodesUsed: imageInodes }),
    containerFs: fsStats(at.wall, container, { usedBytes: containerBytes, inodesUsed: containerInodes }),
  };
}

function podStats(pod: PodSample, facts: SummaryFacts): Json {
  const { usage, network } = pod;
  const time = timeOf(usage.at.wall);
  const storage = facts.storage?.get(pod.uid);
  const base = {
    podRef: { name: pod.name, namespace: pod.namespace, uid: pod.uid },
    startTime: timeOf(pod.startedAt),
    containers: pod.containers.map((container) => containerStats(container, facts, storage)),
    ...cpuAndMemory(usage),
  };
  if (facts.onlyCpuAndMemory) return { ...base, ...swapStats(usage) };
  return {
    ...base,
    ...ioStats(usage),
    ...(network && { network: networkStats(time, network) }),
    ...storageStats(pod, facts),
    ...processStats(pod),
    ...swapStats(usage),
  };
}

/** Processes of the pod's containers, without that of the sandbox; a runtime may count only those of the whole pod. */
function processStats({ containers, usage: { processes = 0 } }: PodSample): Json {
  const counts = containers.flatMap(({ usage }) => usage.processes ?? []);
  const count = counts.reduce((sum, one) => sum + one, 0) || processes;
  return count === 0 ? {} : { process_stats: { process_count: count } };
}

function storageStats({ uid, namespace }: PodSample, { storage: all, node, spaceAt }: SummaryFacts): Json {
  const [storage, space] = [all?.get(uid), node.disks.node];
  if (storage === undefined || space === undefined) return {};
  const at = node.disks.at.wall;
  const volumes = storage.parts.flatMap((part) => {
    const own = part.path === undefined ? undefined : spaceAt?.(part.path);
    if (part.kind === "emptyDir") return part.usage === undefined ? [] : [emptyDirStats(part, own ?? space)];
    return part.kind === "volume" && own !== undefined ? [volumeStats(part, { namespace, at, space: own })] : [];
  });
  const ephemeral = fsStats(at, space, { usedBytes: storage.bytes, inodesUsed: storage.inodes });
  return { ...(volumes.length > 0 && { volume: volumes }), "ephemeral-storage": ephemeral };
}

/** A volume in memory has the size of its limit; one on disk shares the space of its node. */
function emptyDirStats({ name, usage, isMemory, sizeLimit }: StoragePart, space: FilesystemSpace): Json {
  const used = { usedBytes: usage?.bytes ?? 0, inodesUsed: usage?.inodes ?? 0 };
  const availableBytes = Math.max(0, (sizeLimit ?? 0) - used.usedBytes);
  const place = isMemory && sizeLimit !== undefined ? { ...space, capacityBytes: sizeLimit, availableBytes } : space;
  return { ...fsStats(usage?.at ?? 0, place, used), name };
}

/** A claim or what a server has is as full as its filesystem; of other volumes only their own files count. */
function volumeStats(
  { name, usage, claim, isRemote, hasDriver }: StoragePart,
  { namespace, at, space }: { readonly namespace: string; readonly at: number; readonly space: VolumeSpace },
): Json {
  if (claim !== undefined || isRemote === true || hasDriver === true) {
    const { condition } = space;
    return {
      ...fsStats(at, space, usedOf(space)),
      name,
      ...(claim !== undefined && { pvcRef: { name: claim, namespace } }),
      ...(condition && { volumeHealthStats: { abnormal: condition.isAbnormal } }),
    };
  }
  const used = { usedBytes: usage?.bytes ?? 0, inodesUsed: usage?.inodes ?? 0 };
  return { ...fsStats(usage?.at ?? at, space, used), name };
}

function containerStats(container: ContainerSample, facts: SummaryFacts, storage: PodStorage | undefined): Json {
  const { name, usage } = container;
  const base = { name, startTime: timeOf(container.startedAt), ...cpuAndMemory(usage) };
  if (facts.onlyCpuAndMemory) return { ...base, ...swapStats(usage) };
  const { node, image = node, container: layers = image } = facts.node.disks;
  const part = (kind: StoragePart["kind"], space: FilesystemSpace | undefined): Json | undefined => {
    const found = storage?.parts.find((one) => one.kind === kind && one.name === name)?.usage;
    if (found === undefined || space === undefined) return undefined;
    return fsStats(found.at, space, { usedBytes: found.bytes, inodesUsed: found.inodes });
  };
  const [rootfs, logs] = [part("layer", layers), part("log", node)];
  return { ...base, ...ioStats(usage), ...(rootfs && { rootfs }), ...(logs && { logs }), ...swapStats(usage) };
}

/** The agent's cgroup may be older than the agent. */
function systemStats({ name, startedAt, usage }: SystemSample, facts: SummaryFacts): Json {
  const io = facts.onlyCpuAndMemory ? {} : ioStats(usage);
  return {
    name,
    startTime: timeOf(name === "kubelet" ? facts.agentStartedAt : startedAt),
    ...cpuAndMemory(usage),
    ...io,
    ...swapStats(usage),
  };
}

function cpuAndMemory(usage: UsageSample): Json {
  const time = timeOf(usage.at.wall);
  const { cpu, memory, nanoCores } = usage;
  return {
    ...(cpu && {
      cpu: {
        time,
        // Unknown in the first sample: 0, as in Kubernetes.
        usageNanoCores: nanoCores ?? 0,
        usageCoreNanoSeconds: cpu.usageNanos,
        psi: cpu.psi ?? UNKNOWN_PRESSURE,
      },
    }),
    ...(memory && { memory: memoryStats(time, memory) }),
  };
}

function memoryStats(time: string, memory: MemoryUsage): Json {
  const { limit, psi = UNKNOWN_PRESSURE } = memory;
  return {
    time,
    ...(limit !== undefined && { availableBytes: Math.max(0, limit - memory.workingSet) }),
    usageBytes: memory.usage,
    workingSetBytes: memory.workingSet,
    rssBytes: memory.rss,
    pageFaults: memory.pageFaults,
    majorPageFaults: memory.majorPageFaults,
    psi,
  };
}

function ioStats({ at, io }: UsageSample): Json {
  return { io: { time: timeOf(at.wall), psi: io?.psi ?? UNKNOWN_PRESSURE } };
}

function swapStats({ at, memory }: UsageSample): Json {
  if (memory === undefined) return {};
  const { swap, swapLimit } = memory;
  const available = swapLimit === undefined ? {} : { swapAvailableBytes: Math.max(0, swapLimit - swap) };
  return { swap: { time: timeOf(at.wall), ...available, swapUsageBytes: swap } };
}

function networkStats(time: string, interfaces: readonly InterfaceUsage[]): Json {
  const shown = interfaces.map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => {
    return { name, rxBytes, rxErrors, txBytes, txErrors };
  });
  const main = shown.find(({ name }) => name === DEFAULT_INTERFACE);
  return { time, name: "", ...main, interfaces: shown };
}

function usedOf(space: VolumeSpace): { usedBytes: number; inodesUsed: number } {
  const { usedBytes, inodes, inodesFree, inodesUsed = inodes - inodesFree } = space;
  return { usedBytes, inodesUsed };
}

function fsStats(at: number, space: FilesystemSpace, used: { usedBytes: number; inodesUsed: number }): Json {
  const { availableBytes, capacityBytes, inodesFree, inodes } = space;
  const { usedBytes, inodesUsed } = used;
  return { time: timeOf(at), availableBytes, capacityBytes, usedBytes, inodesFree, inodes, inodesUsed };
}

/** The last time that was written: all samples of a round have one of few. */
let written = { second: Number.NaN, text: "" };

/** RFC 3339 with a resolution of a second. */
function timeOf(wall: number): string {
  const second = Math.floor(wall / 1000);
  if (second !== written.second) written = { second, text: `${new Date(second * 1000).toISOString().slice(0, 19)}Z` };
  return written.text;
}
