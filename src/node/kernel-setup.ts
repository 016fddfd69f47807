import type { KernelSettings } from "../adapters/host/kernel-settings.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** A setting of the kernel that a node needs, and what happens without it. */
interface NeededSetting {
  readonly name: string;
  readonly value: number;
  readonly otherwise: string;
}

/** The settings of Kubernetes. */
const NEEDED: readonly NeededSetting[] = [
  { name: "vm.overcommit_memory", value: 1, otherwise: "processes may fail to allocate memory that is free" },
  {
    name: "vm.panic_on_oom",
    value: 0,
    otherwise: "the machine panics when memory runs out instead of killing a process",
  },
  { name: "kernel.panic", value: 10, otherwise: "a machine that panicked does not restart after 10 seconds" },
  { name: "kernel.panic_on_oops", value: 1, otherwise: "the machine runs on after a fault of the kernel" },
  { name: "kernel.keys.root_maxkeys", value: 1_000_000, otherwise: "containers may fail to start for lack of keys" },
  {
    name: "kernel.keys.root_maxbytes",
    value: 25_000_000,
    otherwise: "containers may fail to start for lack of memory for keys",
  },
];

/** Returns one line for each setting that is not as needed; with `protectKernelDefaults` the agent does not start then. */
export function kernelProblems(settings: KernelSettings): readonly string[] {
  return NEEDED.flatMap(({ name, value }) => {
    const now = attempt(() => settings.read(name));
    if (now === value) return [];
    const found = typeof now === "number" ? `is ${now}` : `cannot be read: ${now.problem}`;
    return [`protectKernelDefaults: true, but ${name} ${found}; set it to ${value} (sysctl -w ${name}=${value})`];
  });
}

/** Changes the settings that are not as needed. What the kernel refuses is a warning with its consequence. */
export function setUpKernel(settings: KernelSettings, log: Pick<Logger, "info" | "warn">): void {
  for (const { name, value, otherwise } of NEEDED) {
    const now = attempt(() => settings.read(name));
    if (now === value) continue;
    const written = typeof now === "number" ? attempt(() => (settings.write(name, value), value)) : now;
    if (typeof written === "number") log.info("Changed kernel setting", { setting: name, value, before: now });
    else log.warn("Failed to change kernel setting", { setting: name, value, otherwise, error: written.problem });
  }
}

function attempt(work: () => number): number | { readonly problem: string } {
  try {
    return work();
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
