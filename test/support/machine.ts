import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { formatCpuSet } from "../../src/model/cpu-set.ts";
import type { CpuPlace, MachineTopology } from "../../src/model/machine-topology.ts";

/** A machine of equal sockets. */
export interface MachineShape {
  readonly sockets: number;
  /** NUMA nodes of each socket; defaults to 1. */
  readonly nodes?: number;
  /** L3 groups of each NUMA node; defaults to 1. */
  readonly caches?: number;
  /** Cores of each L3 group. */
  readonly cores: number;
  /** Threads of each core; defaults to 2. */
  readonly threads?: number;
  readonly offline?: readonly number[];
  /** Of each NUMA node; defaults to 16 GiB. */
  readonly memoryBytes?: number;
  /** Pages of each NUMA node by their size in bytes. */
  readonly hugePages?: Readonly<Record<number, number>>;
}

/** The topology that the agent finds on such a machine: CPU n and n + half are threads of one core, as on x86. */
export function machine(shape: MachineShape): MachineTopology {
  const { sockets, nodes = 1, caches = 1, cores, threads = 2, offline = [] } = shape;
  const coreCount = sockets * nodes * caches * cores;
  const cpus: CpuPlace[] = [];
  for (let cpu = 0; cpu < coreCount * threads; cpu++) {
    if (offline.includes(cpu)) continue;
    const core = cpu % coreCount;
    const numa = Math.floor(core / (cores * caches));
    const socket = Math.floor(numa / nodes);
    const siblings = Array.from({ length: threads }, (_, thread) => core + thread * coreCount);
    const first = siblings.find((each) => !offline.includes(each)) ?? cpu;
    cpus.push({ cpu, core: first, socket, numa, uncore: caches === 1 ? socket : Math.floor(core / cores) });
  }
  const hugePages = Object.entries(shape.hugePages ?? {}).map(([size, pages]) => ({ pageBytes: Number(size), pages }));
  const count = sockets * nodes;
  const far = (a: number, b: number): number =>
    a === b ? 10 : Math.floor(a / nodes) === Math.floor(b / nodes) ? 12 : 32;
  return {
    cpus,
    offline,
    nodes: Array.from({ length: count }, (_, id) => ({
      id,
      memoryBytes: shape.memoryBytes ?? 16 * 2 ** 30,
      hugePages,
      distances: Array.from({ length: count }, (_, other) => far(id, other)),
    })),
  };
}

/** Writes the kernel's files for the machine below a directory. */
export function writeSysfs(root: string, { cpus, nodes, offline }: MachineTopology): void {
  const write = (path: string, text: string | number): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  };
  const list = (all: readonly CpuPlace[]): string => formatCpuSet(new Set(all.map(({ cpu }) => cpu)));
  write("devices/system/cpu/online", list(cpus));
  for (const cpu of offline) mkdirSync(join(root, `devices/system/cpu/cpu${cpu}`), { recursive: true });
  for (const place of cpus) {
    const at = `devices/system/cpu/cpu${place.cpu}`;
    write(`${at}/topology/physical_package_id`, place.socket);
    // Not unique on the machine, as on real ones.
    write(`${at}/topology/core_id`, cpus.filter(({ socket }) => socket === place.socket).indexOf(place));
    write(`${at}/topology/core_cpus_list`, list(cpus.filter(({ core }) => core === place.core)));
    write(`${at}/cache/index0/level`, 1);
    write(`${at}/cache/index3/level`, 3);
    write(`${at}/cache/index3/id`, place.uncore);
    write(
      `${at}/cache/index3/shared_cpu_list`,
      list(cpus.filter(({ uncore, socket }) => uncore === place.uncore && socket === place.socket)),
    );
  }
  for (const { id, memoryBytes, hugePages, distances } of nodes) {
    const at = `devices/system/node/node${id}`;
    write(`${at}/cpulist`, list(cpus.filter(({ numa }) => numa === id)));
    write(`${at}/meminfo`, `Node ${id} MemTotal:       ${memoryBytes / 1024} kB\nNode ${id} MemFree:        1024 kB`);
    write(`${at}/distance`, distances.join(" "));
    for (const { pageBytes, pages } of hugePages)
      write(`${at}/hugepages/hugepages-${pageBytes / 1024}kB/nr_hugepages`, pages);
  }
}
