import { readdirSync } from "node:fs";
import type { HugePagePool, MachineTopology } from "../../model/machine-topology.ts";
import { numberIn, readKernelFile } from "./kernel-file.ts";
import { readHugePages, readMachineTopology } from "./machine-topology.ts";

/** Processors, disks and network devices of the machine. */
export interface Hardware {
  /** Empty where the kernel does not tell. */
  readonly vendorId: string;
  readonly physicalCores: number;
  readonly sockets: number;
  readonly cpuKhz: number;
  /** Of the whole machine. */
  readonly hugePages: readonly HugePagePool[];
  readonly topology: MachineTopology;
  /** The kernel's ids of cores, by the lowest CPU of each. */
  readonly coreIds: ReadonlyMap<number, number>;
  /** Caches that a core uses, by the lowest CPU of each. */
  readonly caches: ReadonlyMap<number, readonly CpuCache[]>;
  /** By `major:minor`. */
  readonly disks: Readonly<Record<string, DiskFacts>>;
  readonly networkDevices: readonly NetworkDevice[];
}

/** A cache of processors. */
export interface CpuCache {
  readonly id: number;
  /** Bytes. */
  readonly size: number;
  /** `Data`, `Instruction` or `Unified`. */
  readonly type: string;
  readonly level: number;
  /** How many CPUs share it. */
  readonly cpus: number;
}

export interface DiskFacts {
  readonly name: string;
  readonly major: number;
  readonly minor: number;
  readonly size: number;
  readonly scheduler: string;
}

export interface NetworkDevice {
  readonly name: string;
  readonly mac_address: string;
  /** Megabits a second. */
  readonly speed: number;
  readonly mtu: number;
}

const CPUS = "/sys/devices/system/cpu";
const SECTOR_BYTES = 512;
/** Disks and interfaces that are no hardware, as in cAdvisor. */
const NO_DISK = /^(loop|ram|sr)/;
const NO_NETWORK = /^(lo|veth|docker|nerdctl)/;

/** Reads it from /sys; what the kernel does not tell is 0 or missing. */
export function readHardware(): Hardware {
  const cpus = entriesOf(CPUS).filter((name) => /^cpu\d+$/.test(name));
  const places = cpus.map((name) => {
    const at = `${CPUS}/${name}/topology`;
    return { socket: numberIn(`${at}/physical_package_id`) ?? 0, core: numberIn(`${at}/core_id`) ?? 0 };
  });
  const topology = readMachineTopology();
  const cores = [...new Set(topology.cpus.map(({ core }) => core))];
  return {
    vendorId: /^vendor_id\s*:\s*(\S+)/m.exec(readKernelFile("/proc/cpuinfo") ?? "")?.[1] ?? "",
    hugePages: readHugePages("/sys/kernel/mm/hugepages"),
    topology,
    coreIds: new Map(cores.map((cpu) => [cpu, numberIn(`${CPUS}/cpu${cpu}/topology/core_id`) ?? cpu])),
    caches: new Map(cores.map((cpu) => [cpu, cachesOf(cpu)])),
    physicalCores: new Set(places.map(({ socket, core }) => `${socket}/${core}`)).size,
    sockets: new Set(places.map(({ socket }) => socket)).size,
    cpuKhz: readCpuKhz(),
    disks: Object.fromEntries(entriesOf("/sys/block").flatMap(diskOf)),
    networkDevices: entriesOf("/sys/class/net").flatMap(networkOf),
  };
}

function cachesOf(cpu: number): readonly CpuCache[] {
  const at = `${CPUS}/cpu${cpu}/cache`;
  return entriesOf(at)
    .filter((name) => /^index\d+$/.test(name))
    .map((name) => {
      const text = (file: string): string => (readKernelFile(`${at}/${name}/${file}`) ?? "").trim();
      const [, amount = "0", unit = ""] = /^(\d+)([KM]?)$/.exec(text("size")) ?? [];
      return {
        id: Number(text("id") || 0),
        size: Number(amount) * (unit === "K" ? 1024 : unit === "M" ? 1024 * 1024 : 1),
        type: text("type"),
        level: Number(text("level") || 0),
        cpus: countCpus(text("shared_cpu_list")),
      };
    });
}

/** How many CPUs a list such as `0-3,8` has. */
function countCpus(list: string): number {
  return list.split(",").reduce((sum, part) => {
    const [from = Number.NaN, to = from] = part.split("-").map(Number);
    return Number.isNaN(from) ? sum : sum + to - from + 1;
  }, 0);
}

function readCpuKhz(): number {
  const fixed = numberIn(`${CPUS}/cpu0/cpufreq/cpuinfo_max_freq`);
  if (fixed !== undefined) return fixed;
  const mhz = /^cpu MHz\s*:\s*([\d.]+)$/m.exec(readKernelFile("/proc/cpuinfo") ?? "")?.[1];
  return Math.round(Number(mhz ?? 0) * 1000);
}

function diskOf(name: string): readonly (readonly [string, DiskFacts])[] {
  if (NO_DISK.test(name)) return [];
  const numbers = (readKernelFile(`/sys/block/${name}/dev`) ?? "").trim();
  const [major, minor] = numbers.split(":").map(Number);
  if (major === undefined || minor === undefined) return [];
  const size = (numberIn(`/sys/block/${name}/size`) ?? 0) * SECTOR_BYTES;
  const scheduler = /\[([^\]]+)\]/.exec(readKernelFile(`/sys/block/${name}/queue/scheduler`) ?? "")?.[1] ?? "none";
  return [[numbers, { name, major, minor, size, scheduler }]];
}

function networkOf(name: string): readonly NetworkDevice[] {
  if (NO_NETWORK.test(name)) return [];
  const at = `/sys/class/net/${name}`;
  const mac = (readKernelFile(`${at}/address`) ?? "").trim();
  // Unknown is -1, or an error.
  const speed = Number.parseInt(readKernelFile(`${at}/speed`) ?? "", 10) || 0;
  return [{ name, mac_address: mac, speed, mtu: numberIn(`${at}/mtu`) ?? 0 }];
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}
