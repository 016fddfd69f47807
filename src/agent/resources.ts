import { endCgroupProcesses } from "../adapters/cgroup/end-processes.ts";
import { type KernelLimits, readKernelLimits } from "../adapters/cgroup/facts.ts";
import { CgroupTree } from "../adapters/cgroup/tree.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import { hugePages } from "../adapters/host/node-facts.ts";
import type { AgentOptions } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { pageSizeName } from "../model/pod-cgroup-values.ts";
import { amountOf, subtractAmounts, tryParseQuantity, wholeValue, ZERO } from "../model/quantity.ts";
import { addResources, parseResources, type ResourceAmounts } from "../model/resources.ts";
import type { LimitFacts } from "../pods/index.ts";
import { type CgroupDriver, type LimitRules, measuredCgroups, PodCgroups } from "../resources/index.ts";

/** How long a call to systemd may take, in milliseconds (30 s, as in Kubernetes). */
const SYSTEMD_MS = 30_000;
const REFRESH_MS = 60_000;

/** What the cgroups need of the machine; `LinuxHost` has it. */
export interface ResourceHost {
  removeCgroup(path: string): Promise<void>;
  cgroupMounts(): readonly CgroupMount[];
  exec(
    file: string,
    args: readonly string[],
    options: { readonly timeoutMs: number },
  ): Promise<{ readonly code: number | undefined; readonly stderr: string }>;
}

/** What the limits of pods are made from. */
export interface ResourceParts {
  readonly deps: {
    readonly host: ResourceHost;
    readonly log: Logger;
    readonly metrics: Metrics;
    readonly clock: Clock;
  };
  readonly settings: {
    readonly cgroupDriver: CgroupDriver;
    readonly machine: { readonly cores: number; readonly memoryBytes: number };
  };
  /** The options in force. */
  options(): AgentOptions;
}

/** The cgroups of pods, and what containers are limited by. */
export function composeResources(parts: ResourceParts): { cgroups: PodCgroups; limits: () => LimitFacts } {
  const { host, log, metrics, clock } = parts.deps;
  const mounts = host.cgroupMounts();
  const kernel = readKernelLimits(mounts);
  const { cgroupDriver } = parts.settings;
  const tree = measuredCgroups(metrics, clock, {
    tree: new CgroupTree(mounts, cgroupDriver === "systemd" ? { systemd: (args) => busctl(host, args) } : {}),
    version: kernel.cgroupVersion ?? 1,
  });
  const hierarchies = mounts.map(({ mountpoint }) => mountpoint);
  const { cgroupRoot, cgroupsPerQOS } = parts.options();
  const cgroups = new PodCgroups(
    { host, log, tree, endProcesses: (path) => endCgroupProcesses(hierarchies, path) },
    {
      ...{ driver: cgroupDriver, root: cgroupRoot, perQos: cgroupsPerQOS },
      // Pages may be set aside while the agent runs.
      rules: () => limitRules(parts.options(), { ...parts.settings.machine, hugePages: hugePages() }, kernel),
    },
  );
  return { cgroups, limits: () => limitFacts(parts.options(), parts.settings.machine, kernel) };
}

/** Looks once a minute, as Kubernetes does, whether the cgroups above those of pods are as they should be. */
export async function keepCgroups(
  cgroups: Pick<PodCgroups, "refresh">,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(REFRESH_MS, { signal });
    await cgroups.refresh();
  }
}

async function busctl(host: ResourceHost, args: readonly string[]): Promise<void> {
  const { code, stderr } = await host.exec("busctl", args, { timeoutMs: SYSTEMD_MS });
  if (code !== 0) throw new Error(stderr.trim() || `busctl ended with ${code}`);
}

/** The settings that limits follow from. */
export type LimitOptions = Pick<
  AgentOptions,
  "enforceNodeAllocatable" | "systemReserved" | "kubeReserved" | "cpuCFSQuota" | "cpuCFSQuotaPeriod" | "podPidsLimit"
>;

/** What pods together may use, and how a pod's limits are enforced. Hard eviction is not taken off here (3.2). */
export function limitRules(
  options: LimitOptions,
  machine: { cores: number; memoryBytes: number; hugePages: Readonly<Record<string, number>> },
  kernel: Pick<KernelLimits, "hugepageKib" | "pidMax">,
): LimitRules {
  const pages = Object.entries(machine.hugePages);
  const capacity: ResourceAmounts = {
    ...{ cpu: amountOf(machine.cores), memory: amountOf(machine.memoryBytes, "binary") },
    // A size that is left out would be limited to nothing for all pods together.
    ...Object.fromEntries(pages.map(([size, bytes]) => [`hugepages-${size}`, amountOf(bytes, "binary")])),
  };
  const isEnforced = options.enforceNodeAllocatable.includes("pods");
  const { pid: systemPids, ...system } = options.systemReserved;
  const { pid: kubePids, ...kube } = options.kubeReserved;
  const reserved = addResources(parseResources(system), parseResources(kube));
  const pids = [systemPids, kubePids].map((text) => wholeValue(tryParseQuantity(text ?? "0") ?? ZERO));
  const keptPids = isEnforced ? pids.reduce((sum, each) => sum + each, 0) : 0;
  const allocatable = Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => {
      const left = isEnforced ? subtractAmounts(amount, reserved[name] ?? ZERO) : amount;
      return [name, left.nano < 0n ? ZERO : left];
    }),
  );
  return {
    ...{ cpuCfsQuota: options.cpuCFSQuota, cpuPeriodUs: options.cpuCFSQuotaPeriod * 1000 },
    ...{ hugepageSizes: kernel.hugepageKib.map(pageSizeName), podPidsLimit: options.podPidsLimit },
    node: { allocatable, pids: kernel.pidMax === undefined ? undefined : kernel.pidMax - keptPids },
  };
}

function limitFacts(options: AgentOptions, machine: { memoryBytes: number }, kernel: KernelLimits): LimitFacts {
  return {
    memoryCapacity: machine.memoryBytes,
    ...{ cpuCfsQuota: options.cpuCFSQuota, cpuPeriodUs: options.cpuCFSQuotaPeriod * 1000 },
    hugepageSizes: kernel.hugepageKib.map(pageSizeName),
    cgroupVersion: kernel.cgroupVersion ?? 1,
    canLimitSwap: kernel.canLimitSwap,
    // Version 1 has no way to end all processes of a container together.
    singleProcessOomKill: options.singleProcessOOMKill ?? kernel.cgroupVersion !== 2,
  };
}
