const CPUS = "/sys/devices/system/cpu";
/** More CPUs than any kernel supports; a list with more is invalid. */
const MOST_CPUS = 8192;

/** Always sent: containerd masks nothing if the request names no path. */
export const MASKED_PATHS: readonly string[] = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];

export const READONLY_PATHS: readonly string[] = [
  "/proc/bus",
  "/proc/fs",
  "/proc/irq",
  "/proc/sys",
  "/proc/sysrq-trigger",
];

/**
 * Returns the paths to mask on this machine besides the fixed ones: the throttling counters of each CPU, which reveal
 * what other containers do. `machine` reads small system files and tells whether a path exists.
 */
export function thermalPaths(machine: { readSmall(path: string): string; exists(path: string): boolean }): string[] {
  return cpuNumbers(machine.readSmall(`${CPUS}/possible`))
    .map((cpu) => `${CPUS}/cpu${cpu}/thermal_throttle`)
    .filter((path) => machine.exists(path));
}

/** Parses a kernel list such as `0-3,8`; empty for an invalid one. */
export function cpuNumbers(list: string): number[] {
  const numbers: number[] = [];
  for (const part of list.trim().split(",")) {
    const range = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (range === null) return [];
    const first = Number(range[1]);
    const last = Number(range[2] ?? range[1]);
    if (last < first || last >= MOST_CPUS) return [];
    for (let cpu = first; cpu <= last; cpu++) numbers.push(cpu);
  }
  return numbers;
}
