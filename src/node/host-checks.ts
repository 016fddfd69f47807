import { readKernelLimits } from "../adapters/cgroup/facts.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import {
  type AgentOptions,
  ConfigurationError,
  isGiven,
  type LoadedConfiguration,
  type OptionName,
} from "../config/index.ts";
import type { Logger } from "../lib/log.ts";

/** The facts of the machine that the checks need. */
export interface HostFacts {
  readonly cgroupVersion: 1 | 2 | undefined;
  /** Swap files and partitions that are in use. */
  readonly swaps: readonly string[];
}

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
  options: Pick<AgentOptions, "failCgroupV1" | "swapBehavior" | "singleProcessOOMKill" | "failSwapOn">,
  { cgroupVersion, swaps }: HostFacts,
  isGiven: (option: OptionName) => boolean,
): HostVerdict {
  const refusals: string[] = [];
  const warnings: string[] = [];
  if (cgroupVersion === 1) {
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

/** Rejects settings that the host cannot fulfil, all in one `ConfigurationError`. */
export function rejectUnfitHost(
  { host, log }: { readonly host: HostFiles; readonly log: Logger },
  options: AgentOptions,
  { provenance }: LoadedConfiguration,
): void {
  const { cgroupVersion } = readKernelLimits(host.cgroupMounts());
  const facts = { cgroupVersion, swaps: swapsIn(host.readSmall("/proc/swaps") ?? "") };
  const { refusals, warnings } = checkHost(options, facts, (name) => {
    const origin = provenance.get(name)?.origin;
    return origin !== undefined && isGiven(origin);
  });
  for (const warning of warnings) log.warn("Host does not fit the configuration", { warning });
  if (refusals.length > 0) throw new ConfigurationError("Impossible", refusals.join("\nerror: "));
}
