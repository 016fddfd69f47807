import { endCgroupProcesses } from "../adapters/cgroup/end-processes.ts";
import { readKernelLimits } from "../adapters/cgroup/facts.ts";
import { CgroupTree } from "../adapters/cgroup/tree.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import { hugePages } from "../adapters/host/node-facts.ts";
import type { AgentOptions } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { CgroupDriver } from "./cgroup-names.ts";
import { type ContainerLimitFacts, limitFacts, limitRules } from "./limit-rules.ts";
import { measuredCgroups } from "./measured-cgroups.ts";
import { PodCgroups } from "./pod-cgroups.ts";

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
  /** Records an event about the node. */
  event?(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** The cgroups of pods, and the facts for limits of containers. */
export function composeResources(parts: ResourceParts): { cgroups: PodCgroups; limits: () => ContainerLimitFacts } {
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
    {
      host,
      log,
      tree,
      endProcesses: (path: string) => endCgroupProcesses(hierarchies, path),
      event: (type, reason, message) => parts.event?.(type, reason, message),
    },
    {
      driver: cgroupDriver,
      root: cgroupRoot,
      perQos: cgroupsPerQOS,
      // Huge pages may be reserved while the agent runs.
      rules: () => limitRules(parts.options(), { ...parts.settings.machine, hugePages: hugePages() }, kernel),
    },
  );
  return { cgroups, limits: () => limitFacts(parts.options(), parts.settings.machine, kernel) };
}

/** Reconciles the cgroups above those of pods once a minute, as Kubernetes does. */
export async function refreshCgroups(
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
  if (code !== 0) throw new Error(stderr.trim() || `busctl exited with code ${code}`);
}
