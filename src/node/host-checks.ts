import { onlineCpus, readKernelLimits } from "../adapters/cgroup/facts.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import { kernelSettings } from "../adapters/host/kernel-settings.ts";
import { machineInfo } from "../adapters/host/machine.ts";
import {
  type AgentOptions,
  ConfigurationError,
  cpusIn,
  isGiven,
  type LoadedConfiguration,
  type OptionName,
} from "../config/index.ts";
import type { Logger } from "../lib/log.ts";
import { formatCpuSet, parseCpuSet } from "../model/cpu-set.ts";
import { amountOf, compareAmounts, formatQuantity, ZERO } from "../model/quantity.ts";
import { addResources, type ResourceAmounts } from "../model/resources.ts";
import { evictionReservation, reservedResources } from "./capacity.ts";
import { kernelProblems, setUpKernel } from "./kernel-setup.ts";

/** The facts of the machine that the checks need. */
export interface HostFacts {
  readonly cgroupVersion: 1 | 2 | undefined;
  /** The controllers of cgroups that there are. */
  readonly controllers: readonly string[];
  /** Swap files and partitions that are in use. */
  readonly swaps: readonly string[];
  readonly cores: number;
  /** As the kernel lists them (`0-3`): others may be offline. Undefined if it does not tell. */
  readonly onlineCpus: string | undefined;
  readonly memoryBytes: number;
}

type CheckedOptions = Pick<
  AgentOptions,
  | "failCgroupV1"
  | "swapBehavior"
  | "singleProcessOOMKill"
  | "failSwapOn"
  | "systemReserved"
  | "kubeReserved"
  | "reservedSystemCPUs"
  | "evictionHard"
  | "experimentalAllocatableIgnoreEviction"
>;

/** Why the agent does not start on this machine with these settings, and what it only warns of. */
export interface HostVerdict {
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Returns the settings that do not fit the machine. `isGiven` is true for explicit settings: cgroup v1 is supported, so
 * the default of `failCgroupV1` only warns, and only an explicit one rejects.
 */
export function checkHost(
  options: CheckedOptions,
  { cgroupVersion, controllers, swaps, ...machine }: HostFacts,
  isGiven: (option: OptionName) => boolean,
): HostVerdict {
  const refusals: string[] = [...reservationProblems(options, machine)];
  const warnings: string[] = cgroupVersion === undefined ? [] : [...lackingControllers(controllers)];
  if (cgroupVersion === 1) {
    const missing = REQUIRED_V1.filter((name) => !controllers.includes(name));
    if (missing.length > 0) {
      const names = missing.join(", ");
      refusals.push(`cgroup v1 without the controllers ${names}; mount them (mount -t cgroup) or boot with cgroup v2`);
    }
    if (options.failCgroupV1 && isGiven("failCgroupV1")) {
      refusals.push("failCgroupV1: true, but this machine has cgroup v1; set it to false or boot with cgroup v2");
    } else if (options.failCgroupV1) {
      warnings.push("this machine has cgroup v1, on which Kubernetes' own kubelet would need failCgroupV1: false");
    }
    if (options.swapBehavior === "LimitedSwap") {
      refusals.push("memorySwap.swapBehavior: LimitedSwap needs cgroup v2, and this machine has v1; use NoSwap");
    }
    if (options.singleProcessOOMKill === false) {
      refusals.push("singleProcessOOMKill: false needs cgroup v2, and this machine has v1; leave it out");
    }
  }
  if (options.failSwapOn && swaps.length > 0) {
    refusals.push(
      `failSwapOn: true, but swap is on: ${swaps.join(", ")}; turn it off (swapoff -a) or set failSwapOn to false`,
    );
  }
  return { refusals, warnings };
}

/** Version 1 of cgroups is of no use without these, as in Kubernetes. */
const REQUIRED_V1 = ["cpu", "cpuacct", "cpuset", "memory"];

/** What does not work without a controller, in either version. */
const CONSEQUENCES: Readonly<Record<string, string>> = {
  cpu: "CPU requests and limits of pods have no effect",
  memory: "memory limits of pods have no effect, and no pod is evicted for lack of memory",
  pids: "podPidsLimit and reserved process ids have no effect",
};

function lackingControllers(controllers: readonly string[]): readonly string[] {
  const missing = Object.entries(CONSEQUENCES).filter(([name]) => !controllers.includes(name));
  return missing.map(([name, consequence]) => `this kernel has no cgroup controller ${name}: ${consequence}`);
}

/** Reservations that the machine does not have. */
function reservationProblems(
  options: CheckedOptions,
  { cores, onlineCpus, memoryBytes }: Pick<HostFacts, "cores" | "onlineCpus" | "memoryBytes">,
): readonly string[] {
  const { reservedSystemCPUs } = options;
  const online = parseCpuSet(onlineCpus ?? `0-${cores - 1}`);
  if ([...cpusIn(reservedSystemCPUs)].some((cpu) => !online.has(cpu)))
    return [
      `reservedSystemCPUs: ${reservedSystemCPUs}, but the online CPUs of this machine are ${formatCpuSet(online)}`,
    ];
  const reserved = reservedResources(options);
  const withEviction = addResources(reserved, evictionReservation({ memoryBytes, storageBytes: 0 }, options));
  const capacity = { cpu: amountOf(cores), memory: amountOf(memoryBytes, "binary") };
  return Object.entries(capacity).flatMap(([name, whole]) => {
    const isTooMuch = (amounts: ResourceAmounts): boolean => compareAmounts(amounts[name] ?? ZERO, whole) > 0;
    const has = `but this machine has ${formatQuantity(whole)}`;
    const amountIn = (amounts: ResourceAmounts): string => `${formatQuantity(amounts[name] ?? ZERO)} of ${name}`;
    if (isTooMuch(reserved))
      return [`systemReserved and kubeReserved reserve ${amountIn(reserved)}, ${has}; reserve less`];
    if (!isTooMuch(withEviction)) return [];
    const given = `evictionHard[${name}.available]: ${options.evictionHard[`${name}.available`]}`;
    return [`${given} with systemReserved and kubeReserved is ${amountIn(withEviction)}, ${has}; lower the threshold`];
  });
}

/** Returns the names in /proc/swaps, without those on a tmpfs. */
export function swapsIn(text: string): string[] {
  const lines = text.split("\n").slice(1);
  return lines.map((line) => line.split(/\s+/)[0] ?? "").filter((name) => name !== "");
}

/** What the checks read of the host. */
export interface HostFiles {
  cgroupMounts(): readonly CgroupMount[];
  readSmall(path: string): string | undefined;
}

/** Rejects settings that the host cannot fulfil, all in one `ConfigurationError`, and sets what the kernel needs. */
export function prepareHost(
  { host, log }: { readonly host: HostFiles; readonly log: Logger },
  options: AgentOptions,
  { provenance }: LoadedConfiguration,
): void {
  const { cgroupVersion, controllers } = readKernelLimits(host.cgroupMounts());
  const swaps = swapsIn(host.readSmall("/proc/swaps") ?? "");
  const facts = { ...machineInfo(), onlineCpus: onlineCpus(), cgroupVersion, controllers, swaps };
  const { refusals, warnings } = checkHost(options, facts, (name) => {
    const origin = provenance.get(name)?.origin;
    return origin !== undefined && isGiven(origin);
  });
  for (const warning of warnings) log.warn("Host does not fit the configuration", { warning });
  const settings = kernelSettings();
  const all = [...refusals, ...(options.protectKernelDefaults ? kernelProblems(settings) : [])];
  if (all.length > 0) throw new ConfigurationError("Impossible", all.join("\nerror: "));
  if (!options.protectKernelDefaults) setUpKernel(settings, log);
}
