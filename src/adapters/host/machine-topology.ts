import { readdirSync } from "node:fs";
import { parseCpuSet, sortedCpus } from "../../model/cpu-set.ts";
import type { CpuPlace, HugePagePool, MachineTopology, NumaNode } from "../../model/machine-topology.ts";
import { numberIn, readKernelFile } from "./kernel-file.ts";
import { parseMemory } from "./machine.ts";

/** Where the kernel's files are; others only in tests. */
export interface TopologyFiles {
  readonly sys: string;
  readonly meminfo: string;
}

/** A core as the kernel describes it, with those of its CPUs that are online. */
interface Core {
  readonly cpus: readonly number[];
  readonly socket: number;
  readonly numa: number;
}

const FILES: TopologyFiles = { sys: "/sys", meminfo: "/proc/meminfo" };
/** Caches of this level and above are shared by cores. */
const SHARED_LEVEL = 3;

/** Reads sockets, NUMA nodes, L3 groups, cores and threads. Without NUMA the machine is one node, as in Kubernetes. */
export function readMachineTopology(files: TopologyFiles = FILES): MachineTopology {
  const cpuDir = `${files.sys}/devices/system/cpu`;
  const present = numbersIn(cpuDir, /^cpu(\d+)$/);
  const online = cpuList(`${cpuDir}/online`) ?? present;
  const nodes = readNodes(files);
  const nodeOf = new Map(nodes.flatMap(({ node, cpus }) => cpus.map((cpu) => [cpu, node.id] as const)));
  const fallback = nodes[0]?.node.id ?? 0;
  const cores = readCores(cpuDir, online, (cpu) => nodeOf.get(cpu) ?? fallback);
  return {
    cpus: placesOf(cpuDir, cores),
    nodes: nodes.map(({ node }) => node),
    offline: present.filter((cpu) => !online.includes(cpu)),
  };
}

function readNodes({ sys, meminfo }: TopologyFiles): readonly { node: NumaNode; cpus: readonly number[] }[] {
  const base = `${sys}/devices/system/node`;
  const ids = numbersIn(base, /^node(\d+)$/);
  if (ids.length === 0) {
    const memoryBytes = parseMemory(readKernelFile(meminfo) ?? "");
    const hugePages = readHugePages(`${sys}/kernel/mm/hugepages`);
    return [{ node: { id: 0, memoryBytes, hugePages, distances: [] }, cpus: [] }];
  }
  return ids.map((id) => {
    const at = `${base}/node${id}`;
    const total = /MemTotal:\s+(\d+) kB/.exec(readKernelFile(`${at}/meminfo`) ?? "")?.[1];
    const distances = (readKernelFile(`${at}/distance`) ?? "").trim().split(/\s+/).filter(Boolean).map(Number);
    const hugePages = readHugePages(`${at}/hugepages`);
    const node = { id, memoryBytes: Number(total ?? 0) * 1024, hugePages, distances };
    return { node, cpus: cpuList(`${at}/cpulist`) ?? [] };
  });
}

/** The huge pages of a machine or a NUMA node; none if the kernel has none. */
export function readHugePages(at: string): readonly HugePagePool[] {
  return numbersIn(at, /^hugepages-(\d+)kB$/).map((kb) => ({
    pageBytes: kb * 1024,
    pages: numberIn(`${at}/hugepages-${kb}kB/nr_hugepages`) ?? 0,
  }));
}

/** Cores by their lowest online CPU. */
function readCores(
  cpuDir: string,
  online: readonly number[],
  nodeOf: (cpu: number) => number,
): ReadonlyMap<number, Core> {
  const cores = new Map<number, Core>();
  const isOnline = new Set(online);
  const seen = new Set<number>();
  for (const cpu of online) {
    if (seen.has(cpu)) continue;
    const at = `${cpuDir}/cpu${cpu}/topology`;
    const siblings = cpuList(`${at}/core_cpus_list`) ?? cpuList(`${at}/thread_siblings_list`) ?? [cpu];
    const cpus = sortedCpus(new Set([cpu, ...siblings.filter((other) => isOnline.has(other) && !seen.has(other))]));
    for (const each of cpus) seen.add(each);
    cores.set(cpu, { cpus, socket: Math.max(0, numberIn(`${at}/physical_package_id`) ?? 0), numa: nodeOf(cpu) });
  }
  return cores;
}

/** An L3 cache that the whole NUMA node shares tells nothing: then the socket stands for it, as in Kubernetes. */
function placesOf(cpuDir: string, cores: ReadonlyMap<number, Core>): readonly CpuPlace[] {
  const perNode = new Map<number, number>();
  for (const { numa, cpus } of cores.values()) perNode.set(numa, (perNode.get(numa) ?? 0) + cpus.length);
  const places = [...cores].flatMap(([core, { cpus, socket, numa }]) => {
    const cache = readSharedCache(`${cpuDir}/cpu${core}/cache`);
    const uncore = cache === undefined || cache.cpus === perNode.get(numa) ? socket : cache.id;
    return cpus.map((cpu) => ({ cpu, core, socket, numa, uncore }));
  });
  return places.sort((a, b) => a.cpu - b.cpu);
}

function readSharedCache(at: string): { readonly id: number; readonly cpus: number } | undefined {
  for (const index of numbersIn(at, /^index(\d+)$/)) {
    const cache = `${at}/index${index}`;
    if ((numberIn(`${cache}/level`) ?? 0) < SHARED_LEVEL) continue;
    const cpus = cpuList(`${cache}/shared_cpu_list`);
    const id = numberIn(`${cache}/id`);
    if (cpus !== undefined && id !== undefined) return { id, cpus: cpus.length };
  }
  return undefined;
}

/** The numbers in the names of a directory's entries, in ascending order; none if it cannot be read. */
function numbersIn(directory: string, name: RegExp): readonly number[] {
  try {
    return sortedCpus(
      readdirSync(directory)
        .flatMap((entry) => name.exec(entry)?.[1] ?? [])
        .map(Number),
    );
  } catch {
    return [];
  }
}

function cpuList(path: string): readonly number[] | undefined {
  const text = readKernelFile(path)?.trim();
  try {
    return text === undefined ? undefined : sortedCpus(parseCpuSet(text));
  } catch {
    return undefined;
  }
}
