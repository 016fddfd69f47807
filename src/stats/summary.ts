import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import type { FilesystemSpace, InterfaceUsage, MemoryUsage } from "../model/usage.ts";
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
  /** Wall-clock milliseconds. */
  readonly bootedAt: number;
  readonly memoryBytes: number;
  readonly node: NodeSample;
  readonly pods: Iterable<PodSample>;
  readonly onlyCpuAndMemory: boolean;
  readonly filesystems?: FilesystemSamples | undefined;
  readonly tasks?: { readonly most: number; readonly running: number } | undefined;
  /** What pods keep on disk, by UID. */
  readonly storage?: ReadonlyMap<string, PodStorage>;
}

type Json = Readonly<Record<string, unknown>>;

/** The interface whose numbers stand for all. */
const DEFAULT_INTERFACE = "eth0";

/** The summary in the shape of `stats/v1alpha1`. Pure. */
export function summaryOf(facts: SummaryFacts): Json {
  return {
    node: nodeStats(facts),
    pods: [...facts.pods].map((pod) => podStats(pod, facts)),
  };
}

function nodeStats(facts: SummaryFacts): Json {
  const { node, filesystems, tasks } = facts;
  const { usage } = node;
  const time = timeOf(usage.at.wall);
  const limited: UsageSample = usage.memory
    ? { ...usage, memory: { ...usage.memory, limit: facts.memoryBytes } }
    : usage;
  const base = {
    nodeName: facts.nodeName,
    systemContainers: node.system.map(systemStats),
    startTime: timeOf(facts.bootedAt),
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
    ...(filesystems?.node && { fs: fsStats(filesystems.at.wall, filesystems.node, usedOf(filesystems.node)) }),
    runtime: runtimeStats(filesystems),
    ...(tasks && { rlimit: { time, maxpid: tasks.most, curproc: tasks.running } }),
    ...swap,
  };
}

function runtimeStats(filesystems: FilesystemSamples | undefined): Json {
  const { at, image, container = image, imageBytes = 0, imageInodes = 0 } = filesystems ?? {};
  if (at === undefined || image === undefined || container === undefined) return {};
  return {
    imageFs: fsStats(at.wall, image, { usedBytes: imageBytes, inodesUsed: imageInodes }),
    containerFs: fsStats(at.wall, container, usedOf(container)),
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
    ...storageStats(storage, facts.filesystems),
    ...(usage.pids !== undefined && { process_stats: { process_count: usage.pids } }),
    ...swapStats(usage),
  };
}

function storageStats(storage: PodStorage | undefined, filesystems: FilesystemSamples | undefined): Json {
  const space = filesystems?.node;
  if (storage === undefined || space === undefined) return {};
  const at = filesystems?.at.wall ?? 0;
  const volumes = storage.parts.filter(({ kind, usage }) => kind === "emptyDir" && usage !== undefined);
  const ephemeral = fsStats(at, space, { usedBytes: storage.bytes, inodesUsed: storage.inodes });
  return {
    ...(volumes.length > 0 && { volume: volumes.map((part) => volumeStats(part, space)) }),
    "ephemeral-storage": ephemeral,
  };
}

/** A volume in memory has the size of its limit; one on disk shares the space of its node. */
function volumeStats({ name, usage, isMemory, sizeLimit }: StoragePart, space: FilesystemSpace): Json {
  const used = { usedBytes: usage?.bytes ?? 0, inodesUsed: usage?.inodes ?? 0 };
  const availableBytes = Math.max(0, (sizeLimit ?? 0) - used.usedBytes);
  const place = isMemory && sizeLimit !== undefined ? { ...space, capacityBytes: sizeLimit, availableBytes } : space;
  return { ...fsStats(usage?.at ?? 0, place, used), name };
}

function containerStats(container: ContainerSample, facts: SummaryFacts, storage: PodStorage | undefined): Json {
  const { name, usage } = container;
  const base = { name, startTime: timeOf(container.startedAt), ...cpuAndMemory(usage) };
  if (facts.onlyCpuAndMemory) return { ...base, ...swapStats(usage) };
  const { node, image = node, container: layers = image } = facts.filesystems ?? {};
  const part = (kind: StoragePart["kind"], space: FilesystemSpace | undefined): Json | undefined => {
    const found = storage?.parts.find((one) => one.kind === kind && one.name === name)?.usage;
    if (found === undefined || space === undefined) return undefined;
    return fsStats(found.at, space, { usedBytes: found.bytes, inodesUsed: found.inodes });
  };
  const [rootfs, logs] = [part("layer", layers), part("log", node)];
  return { ...base, ...ioStats(usage), ...(rootfs && { rootfs }), ...(logs && { logs }), ...swapStats(usage) };
}

function systemStats({ name, startedAt, usage }: SystemSample): Json {
  return { name, startTime: timeOf(startedAt), ...cpuAndMemory(usage), ...swapStats(usage) };
}

function cpuAndMemory(usage: UsageSample): Json {
  const time = timeOf(usage.at.wall);
  const { cpu, memory, nanoCores } = usage;
  return {
    ...(cpu && {
      cpu: {
        time,
        ...(nanoCores !== undefined && { usageNanoCores: nanoCores }),
        usageCoreNanoSeconds: cpu.usageNanos,
        ...(cpu.psi && { psi: cpu.psi }),
      },
    }),
    ...(memory && { memory: memoryStats(time, memory) }),
  };
}

function memoryStats(time: string, memory: MemoryUsage): Json {
  const { limit, psi } = memory;
  return {
    time,
    ...(limit !== undefined && { availableBytes: Math.max(0, limit - memory.workingSet) }),
    usageBytes: memory.usage,
    workingSetBytes: memory.workingSet,
    rssBytes: memory.rss,
    pageFaults: memory.pageFaults,
    majorPageFaults: memory.majorPageFaults,
    ...(psi && { psi }),
  };
}

function ioStats({ at, io }: UsageSample): Json {
  return io === undefined ? {} : { io: { time: timeOf(at.wall), psi: io.psi } };
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

function usedOf({ usedBytes, inodes, inodesFree }: FilesystemSpace): { usedBytes: number; inodesUsed: number } {
  return { usedBytes, inodesUsed: inodes - inodesFree };
}

function fsStats(at: number, space: FilesystemSpace, used: { usedBytes: number; inodesUsed: number }): Json {
  const { availableBytes, capacityBytes, inodesFree, inodes } = space;
  const { usedBytes, inodesUsed } = used;
  return { time: timeOf(at), availableBytes, capacityBytes, usedBytes, inodesFree, inodes, inodesUsed };
}

/** RFC 3339 with a resolution of a second. */
function timeOf(wall: number): string {
  return `${new Date(wall).toISOString().slice(0, 19)}Z`;
}
