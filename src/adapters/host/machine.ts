import { readFileSync } from "node:fs";
import { availableParallelism, networkInterfaces, release, totalmem, uptime } from "node:os";

/** What the machine is; the same until it is started again. */
export interface MachineInfo {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  /** For people: `Debian GNU/Linux 12 (bookworm)`. */
  readonly osImage: string;
  readonly bootId: string;
  readonly machineId: string;
  readonly systemUuid: string;
  /** As Kubernetes names it: `amd64`, `arm64` … */
  readonly architecture: string;
}

export interface HostAddress {
  readonly address: string;
  readonly family: "IPv4" | "IPv6";
  readonly interface: string;
}

export function machineInfo(): MachineInfo {
  const machineId = readOr("/etc/machine-id", "").trim();
  return {
    cores: countCores(readOr("/sys/devices/system/cpu/online", "")) || availableParallelism(),
    memoryBytes: parseMemory(readOr("/proc/meminfo", "")) || totalmem(),
    kernel: release(),
    osImage: parseOsRelease(readOr("/etc/os-release", readOr("/usr/lib/os-release", ""))),
    bootId: readOr("/proc/sys/kernel/random/boot_id", "").trim(),
    machineId,
    // A machine without DMI goes by its other id, as in cAdvisor.
    systemUuid: readOr("/sys/class/dmi/id/product_uuid", "").trim() || machineId,
    architecture: process.arch === "x64" ? "amd64" : process.arch,
  };
}

/** Microseconds since the machine was started. */
export function uptimeMicros(): number {
  return uptime() * 1e6;
}

/** `0-3,6` has five. */
export function countCores(online: string): number {
  let cores = 0;
  for (const range of online.trim().split(",")) {
    const [first, last = first] = range.split("-");
    if (first !== undefined && /^\d+$/.test(first)) cores += Number(last) - Number(first) + 1;
  }
  return cores;
}

export function parseMemory(meminfo: string): number {
  return Number(/^MemTotal:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? 0) * 1024;
}

export function parseOsRelease(text: string): string {
  const value = /^PRETTY_NAME=(.*)$/m.exec(text)?.[1] ?? "Linux";
  return value.replace(/^(["'])(.*)\1$/, "$2").replace(/\\(.)/g, "$1");
}

/** Addresses by which others reach this machine, those of the interface with the default route first, IPv4 before IPv6. */
export function hostAddresses(): HostAddress[] {
  const first = defaultInterface(readOr("/proc/net/route", ""));
  const all = Object.entries(networkInterfaces()).flatMap(([name, entries]) =>
    (entries ?? [])
      .filter(({ internal, address }) => !internal && !address.startsWith("fe80:") && !address.startsWith("169.254."))
      .map(({ address, family }): HostAddress => ({ address, family, interface: name })),
  );
  const rank = (entry: HostAddress): number => (entry.interface === first ? 0 : 2) + (entry.family === "IPv4" ? 0 : 1);
  return all.sort((a, b) => rank(a) - rank(b));
}

/** The interface of the default route with the lowest metric in /proc/net/route. */
export function defaultInterface(routes: string): string | undefined {
  const defaults = routes
    .split("\n")
    .slice(1)
    .map((line) => line.split(/\s+/))
    .filter((fields) => fields[1] === "00000000" && fields[7] === "00000000");
  defaults.sort((a, b) => Number(a[6]) - Number(b[6]));
  return defaults[0]?.[0];
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return otherwise;
  }
}
