import { endCgroupProcesses } from "../adapters/cgroup/end-processes.ts";
import { onlineCpus, readKernelLimits } from "../adapters/cgroup/facts.ts";
import { CgroupProcesses } from "../adapters/cgroup/processes.ts";
import { CgroupTree } from "../adapters/cgroup/tree.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import { hugePages, swapSize } from "../adapters/host/node-facts.ts";
import { type AgentOptions, type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { Wakes } from "../lib/wakes.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { CgroupDriver } from "./cgroup-names.ts";
import { type ContainerLimitFacts, type LimitMachine, limitFacts, limitRules, reservedRules } from "./limit-rules.ts";
import { measuredCgroups } from "./measured-cgroups.ts";
import { memoryQosMetrics } from "./memory-qos-metrics.ts";
import { PodCgroups } from "./pod-cgroups.ts";
import { ProcessCgroups } from "./process-cgroups.ts";
import { ReservedCgroups } from "./reserved-cgroups.ts";

/** Timeout of a call to systemd in milliseconds, as in Kubernetes. */
const SYSTEMD_MS = 30_000;
const REFRESH_MS = 60_000;

/** What the cgroups need of the host; `LinuxHost` provides it. */
export interface ResourceHost {
  removeCgroup(path: string): Promise<void>;
  cgroupMounts(): readonly CgroupMount[];
  exec(
    file: string,
    args: readonly string[],
    options: { readonly timeoutMs: number },
  ): Promise<{ readonly code: number | undefined; readonly stderr: string }>;
}

/** What the cgroups of pods are built from. */
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
  /** The current options. */
  options(): AgentOptions;
  /** True if the container (one of the pod's if missing) has CPUs of its own: a CPU quota would only slow it down. */
  hasExclusiveCpus?(pod: Pod, container?: Container): boolean;
  /** Records an event about the node. */
  event?(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** The cgroups of pods, and the facts for limits of containers. */
export function composeResources(parts: ResourceParts): { cgroups: PodCgroups; limits: () => ContainerLimitFacts } {
  const { host, log, metrics, clock } = parts.deps;
  const mounts = host.cgroupMounts();
  const kernel = readKernelLimits(mounts);
  const { cgroupDriver: driver } = parts.settings;
  const tree = measuredCgroups(metrics, clock, {
    tree: new CgroupTree(mounts, driver === "systemd" ? { systemd: (args) => busctl(host, args) } : {}),
    version: kernel.cgroupVersion ?? 1,
  });
  const hierarchies = mounts.map(({ mountpoint }) => mountpoint);
  const { cgroupRoot, cgroupsPerQOS, kubeletCgroups, systemCgroups } = parts.options();
  const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
    parts.event?.(type, reason, message);
  const hasExclusiveCpus = (pod: Pod, container?: Container): boolean =>
    parts.hasExclusiveCpus?.(pod, container) === true;
  // Huge pages may be reserved and CPUs come and go while the agent runs.
  const machine = (): LimitMachine => ({
    ...parts.settings.machine,
    hugePages: hugePages(),
    onlineCpus: onlineCpus(),
  });
  const cgroups = new PodCgroups(
    {
      host,
      log,
      tree,
      event,
      endProcesses: (path: string) => endCgroupProcesses(hierarchies, path),
      beside: [
        new ReservedCgroups({ tree, log, event }, () => reservedRules(parts.options(), kernel, driver)),
        new ProcessCgroups({ host: new CgroupProcesses(mounts), log }, { kubeletCgroups, systemCgroups }),
      ],
    },
    {
      driver,
      root: cgroupRoot,
      perQos: cgroupsPerQOS,
      rules: () => ({ ...limitRules(parts.options(), machine(), kernel), hasExclusiveCpus }),
    },
  );
  const none = { guaranteed: 0, burstable: 0 };
  const isProtected = (): boolean => parts.options().memoryReservationPolicy === "TieredReservation";
  if (isGateOn("MemoryQoS", parts.options().featureGates)) {
    memoryQosMetrics(metrics, () => (isProtected() ? cgroups.requested : none));
  }
  return {
    cgroups,
    limits: () => ({
      ...limitFacts(parts.options(), { ...parts.settings.machine, swapBytes: swapSize }, kernel),
      hasExclusiveCpus,
    }),
  };
}

/** The options that limits above those of pods follow while the agent runs. */
const FOLLOWED = ["enforceNodeAllocatable", "systemReserved", "kubeReserved", "qosReserved"] as const;

/**
 * Sets the limits of the node and its classes at the start and at each change of the configuration, and once a minute
 * again if somebody changed them, as Kubernetes does.
 */
export async function refreshCgroups(
  cgroups: Pick<PodCgroups, "refresh">,
  { clock, store }: { readonly clock: Clock; readonly store: OptionStore<typeof agentOptions> },
  signal: AbortSignal,
): Promise<void> {
  const wakes = new Wakes(clock);
  store.live(...FOLLOWED).onChange(() => wakes.wake(), { signal });
  while (!signal.aborted) {
    wakes.clear();
    await cgroups.refresh();
    await wakes.sleep(REFRESH_MS, signal);
  }
}

async function busctl(host: ResourceHost, args: readonly string[]): Promise<void> {
  const { code, stderr } = await host.exec("busctl", args, { timeoutMs: SYSTEMD_MS });
  if (code !== 0) throw new Error(stderr.trim() || `busctl exited with code ${code}`);
}
