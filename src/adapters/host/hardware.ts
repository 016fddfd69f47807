import { readdirSync } from "node:fs";
import { numberIn, readKernelFile } from "./kernel-file.ts";

/** Processors, disks and network devices of the machine. */
export interface Hardware {
  readonly physicalCores: number;
  readonly sockets: number;
  readonly cpuKhz: number;
  /** By `major:minor`. */
  readonly disks: Readonly<Record<string, DiskFacts>>;
  readonly networkDevices: readonly NetworkDevice[];
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
const NO_DISK = /^(loop|ram|sr|zram)/;
const NO_NETWORK = /^(lo|veth|docker|nerdctl|cni)/;

/** Reads it from /sys; what the kernel does not tell is 0 or missing. */
export function readHardware(): Hardware {
  const cpus = entriesOf(CPUS).filter((name) => /^cpu\d+$/.test(name));
  const places = cpus.map((name) => {
    const at = `${CPUS}/${name}/topology`;
    return { socket: numberIn(`${at}/physical_package_id`) ?? 0, core: numberIn(`${at}/core_id`) ?? 0 };
  });
  return {
    physicalCores: new Set(places.map(({ socket, core }) => `${socket}/${core}`)).size,
    sockets: new Set(places.map(({ socket }) => socket)).size,
    cpuKhz: readCpuKhz(),
    disks: Object.fromEntries(entriesOf("/sys/block").flatMap(diskOf)),
    networkDevices: entriesOf("/sys/class/net").flatMap(networkOf),
  };
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
  return [{ name, mac_address: mac, speed: numberIn(`${at}/speed`) ?? 0, mtu: numberIn(`${at}/mtu`) ?? 0 }];
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}
