import type { KernelLimits } from "../adapters/cgroup/facts.ts";
import { type AgentOptions, isGateOn, reservationsOf } from "../config/index.ts";
import { cpuShares } from "../model/cgroup-values.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { type CgroupValues, hugepageValues, pageSizeName } from "../model/pod-cgroup-values.ts";
import { type Amount, amountOf, subtractAmounts, tryParseQuantity, wholeValue, ZERO } from "../model/quantity.ts";
import { addResources, bytesOf, cpuMilli, parseResources, type ResourceAmounts } from "../model/resources.ts";
import { type CgroupDriver, namedCgroup } from "./cgroup-names.ts";
import type { LimitRules } from "./class-values.ts";
import type { ReservedRule } from "./reserved-cgroups.ts";

/** The settings that limits are computed from. */
export type LimitOptions = Pick<
  AgentOptions,
  | "enforceNodeAllocatable"
  | "systemReserved"
  | "kubeReserved"
  | "reservedSystemCPUs"
  | "cpuManagerPolicy"
  | "cpuCFSQuota"
  | "cpuCFSQuotaPeriod"
  | "podPidsLimit"
  | "qosReserved"
  | "memoryReservationPolicy"
  | "featureGates"
>;

/** The machine's resources that pods share. */
export interface LimitMachine {
  readonly cores: number;
  readonly memoryBytes: number;
  /** The CPUs that are online, as the kernel lists them; undefined if that cannot be read. */
  readonly onlineCpus?: string | undefined;
  /** Bytes by the suffix of the resource, `2Mi`. */
  readonly hugePages: Readonly<Record<string, number>>;
}

/** The limits of all pods together, and how those of a pod are enforced. Hard eviction is not subtracted, as in Kubernetes. Pure. */
export function limitRules(
  options: LimitOptions,
  machine: LimitMachine,
  kernel: Pick<KernelLimits, "hugepageKib" | "pidMax" | "cgroupVersion">,
): LimitRules {
  const isEnforced = options.enforceNodeAllocatable.includes("pods");
  const reserved = Object.values(reservationsOf(options));
  const pids = reserved.reduce((sum, { pid = "0" }) => sum + wholeValue(tryParseQuantity(pid) ?? ZERO), 0);
  const keptPids = isEnforced ? pids : 0;
  const whole = capacity(machine);
  const absolute = withoutReservations(options, machine);
  return {
    cpuCfsQuota: options.cpuCFSQuota,
    cpuPeriodUs: options.cpuCFSQuotaPeriod * 1000,
    hugepageSizes: kernel.hugepageKib.map(pageSizeName),
    podPidsLimit: options.podPidsLimit,
    protectsMemory: managesMemory(options, kernel)
      ? options.memoryReservationPolicy === "TieredReservation"
      : undefined,
    node: {
      allocatable: isEnforced ? absolute : whole,
      pids: kernel.pidMax === undefined ? undefined : kernel.pidMax - keptPids,
      // systemd would take the controller away that no unit of it uses, as in Kubernetes.
      cpus: kernel.cgroupVersion === 2 && options.cpuManagerPolicy !== "static" ? machine.onlineCpus : undefined,
    },
    ...(isGateOn("QOSReserved", options.featureGates) && {
      qosReserved: {
        percent: Number.parseInt(options.qosReserved["memory"] ?? "0", 10),
        memory: bytesOf(absolute, "memory") ?? 0,
      },
    }),
  };
}

/** What the machine has for pods and daemons. */
function capacity({ cores, memoryBytes, hugePages }: LimitMachine): ResourceAmounts {
  const pages = Object.entries(hugePages);
  return {
    cpu: amountOf(cores),
    memory: amountOf(memoryBytes, "binary"),
    // A page size that is missing here would be limited to 0 for all pods together.
    ...Object.fromEntries(pages.map(([size, bytes]) => [`hugepages-${size}`, amountOf(bytes, "binary")])),
  };
}

/** What is left of the capacity without the reservations. */
function withoutReservations(options: LimitOptions, machine: LimitMachine): ResourceAmounts {
  const { systemReserved, kubeReserved } = reservationsOf(options);
  const reserved = addResources(amounts(systemReserved), amounts(kubeReserved));
  const left = ([name, amount]: [string, Amount]): [string, Amount] => {
    const rest = subtractAmounts(amount, reserved[name] ?? ZERO);
    return [name, rest.nano < 0n ? ZERO : rest];
  };
  return Object.fromEntries(Object.entries(capacity(machine)).map(left));
}

/** The amounts without the number of processes, which is not a resource of pods. */
function amounts({ pid: _processes, ...rest }: Readonly<Record<string, string>>): ResourceAmounts {
  return parseResources(rest);
}

/** True if the agent sets `memory.min`, `memory.low` and `memory.high`: with the gate, and only cgroup v2 has them. */
function managesMemory(
  { featureGates }: Pick<AgentOptions, "featureGates">,
  { cgroupVersion }: Pick<KernelLimits, "cgroupVersion">,
): boolean {
  return cgroupVersion === 2 && isGateOn("MemoryQoS", featureGates);
}

/** The reservations that are enforced on cgroups of the host. Pure. */
export function reservedRules(
  options: LimitOptions & Pick<AgentOptions, "systemReservedCgroup" | "kubeReservedCgroup">,
  kernel: Pick<KernelLimits, "hugepageKib" | "cgroupVersion">,
  driver: CgroupDriver,
): readonly ReservedRule[] {
  const { systemReserved, kubeReserved } = reservationsOf(options);
  const groups = [
    { of: "system", name: options.systemReservedCgroup, reserved: systemReserved },
    { of: "kube", name: options.kubeReservedCgroup, reserved: kubeReserved },
  ] as const;
  return groups.flatMap(({ of, name, reserved }) => {
    const isCompressible = options.enforceNodeAllocatable.includes(`${of}-reserved-compressible`);
    if (name === "" || (!isCompressible && !options.enforceNodeAllocatable.includes(`${of}-reserved`))) return [];
    const sizes = kernel.hugepageKib.map(pageSizeName);
    const all = { ...reservedValues(reserved, sizes), ...(managesMemory(options, kernel) && guarded(reserved)) };
    const { cpuShares: shares } = all;
    const values = isCompressible ? { ...(shares !== undefined && { cpuShares: shares }) } : all;
    return [{ of, name, isCompressible, path: namedCgroup(name, driver), values }];
  });
}

function reservedValues(reserved: Readonly<Record<string, string>>, sizes: readonly string[]): CgroupValues {
  const parsed = amounts(reserved);
  const memory = bytesOf(parsed, "memory");
  const pids = tryParseQuantity(reserved["pid"] ?? "");
  return {
    ...(parsed["cpu"] !== undefined && { cpuShares: cpuShares(cpuMilli(parsed)) }),
    ...(memory !== undefined && { memoryLimit: memory }),
    ...(pids !== undefined && { pids: wholeValue(pids) }),
    hugepages: hugepageValues(parsed, sizes),
  };
}

/** What daemons have reserved is also protected. */
function guarded(reserved: Readonly<Record<string, string>>): CgroupValues {
  const memory = bytesOf(amounts(reserved), "memory");
  return memory === undefined ? {} : { memoryMin: memory };
}

/** The node's facts that limits of containers are computed from. */
export interface ContainerLimitFacts {
  readonly hasExclusiveCpus?: (pod: Pod, container?: Container) => boolean;
  readonly memoryCapacity: number;
  readonly cpuCfsQuota: boolean;
  readonly cpuPeriodUs: number;
  readonly hugepageSizes: readonly string[];
  readonly cgroupVersion: 1 | 2;
  readonly canLimitSwap: boolean;
  readonly singleProcessOomKill: boolean;
  /** Bytes of the node's swap if containers get their share of it; undefined if they get none. */
  readonly swapBytes?: number | undefined;
  /** Set if memory use is throttled and protected (gate MemoryQoS on cgroup v2). */
  readonly memoryQos?:
    | {
        readonly throttlingFactor: number;
        readonly isProtected: boolean;
        /** The node's memory without reservations, in bytes. */
        readonly nodeBytes: number;
        readonly pageSize: number;
      }
    | undefined;
}

/** Returns the facts for limits of containers. Pure. */
export function limitFacts(
  options: AgentOptions,
  machine: { readonly memoryBytes: number; swapBytes(): number },
  kernel: KernelLimits,
): ContainerLimitFacts {
  // Version 1 counts swap only together with memory.
  const hasSwap = options.swapBehavior === "LimitedSwap" && kernel.cgroupVersion === 2 && kernel.canLimitSwap;
  return {
    memoryCapacity: machine.memoryBytes,
    cpuCfsQuota: options.cpuCFSQuota,
    cpuPeriodUs: options.cpuCFSQuotaPeriod * 1000,
    hugepageSizes: kernel.hugepageKib.map(pageSizeName),
    cgroupVersion: kernel.cgroupVersion ?? 1,
    canLimitSwap: kernel.canLimitSwap,
    // Version 1 cannot kill all processes of a container as a group.
    singleProcessOomKill: options.singleProcessOOMKill ?? kernel.cgroupVersion !== 2,
    ...(hasSwap && { swapBytes: machine.swapBytes() }),
    ...(managesMemory(options, kernel) && {
      memoryQos: {
        throttlingFactor: options.memoryThrottlingFactor,
        isProtected: options.memoryReservationPolicy === "TieredReservation",
        nodeBytes:
          bytesOf(
            withoutReservations(options, { memoryBytes: machine.memoryBytes, cores: 0, hugePages: {} }),
            "memory",
          ) ?? 0,
        pageSize: kernel.pageSize,
      },
    }),
  };
}
