const CPUS = "/sys/devices/system/cpu";
/** More than any kernel has; a text that says more is no list of CPUs. */
const MOST_CPUS = 8192;

/** Always sent: containerd masks nothing when the request names none. */
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
 * What this machine has to hide besides: the throttling counters of each CPU, which tell one container what the others
 * do (8.8). `machine` reads small files of the system and tells whether one of its paths is there.
 */
export function thermalPaths(machine: { readSmall(path: string): string; exists(path: string): boolean }): string[] {
  return cpuNumbers(machine.readSmall(`${CPUS}/possible`))
    .map((cpu) => `${CPUS}/cpu${cpu}/thermal_throttle`)
    .filter((path) => machine.exists(path));
}

/** The numbers of a kernel list such as `0-3,8`; none of a text that is no such list. */
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
