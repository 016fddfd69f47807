import type { Pod } from "../model/generated/types.ts";
import {
  type CgroupRules,
  type CgroupValues,
  classCgroupValues,
  memoryRequest,
  nodeCgroupValues,
} from "../model/pod-cgroup-values.ts";
import { qosClass } from "../model/qos.ts";
import type { ResourceAmounts } from "../model/resources.ts";

/** What the limits follow from. */
export interface LimitRules extends CgroupRules {
  /** What all pods together may use; undefined values are not limited. */
  readonly node: {
    readonly allocatable: ResourceAmounts;
    readonly pids: number | undefined;
    /** The CPUs of the machine, unless a CPU policy decides on them. */
    readonly cpus?: string | undefined;
  };
  /**
   * Set with the gate QOSReserved: the share of requested memory that lower classes cannot use, in percent, and the
   * node's memory without reservations. A share of 0 lifts the limits of the classes.
   */
  readonly qosReserved?: { readonly percent: number; readonly memory: number } | undefined;
}

/** The values of the cgroups above those of pods. */
export interface ClassValues {
  readonly all: CgroupValues;
  readonly burstable: CgroupValues;
  readonly bestEffort: CgroupValues;
}

/** Bytes of memory that pods request, by class. */
export interface RequestedMemory {
  readonly guaranteed: number;
  readonly burstable: number;
}

/** Returns the values of the cgroups above those of pods. Pure. */
export function classValues(pods: readonly Pod[], rules: LimitRules): ClassValues {
  const { protectsMemory } = rules;
  const isManaged = protectsMemory !== undefined;
  // Not summed up for nothing: this runs whenever a pod comes or goes.
  const requested = isManaged || rules.qosReserved ? requestedMemory(pods) : { guaranteed: 0, burstable: 0 };
  const limits = classLimits(requested, rules);
  return {
    all: {
      ...nodeValues(rules),
      // A cgroup is protected only as far as the one above it is.
      ...(isManaged && { memoryMin: protectsMemory ? requested.guaranteed + requested.burstable : 0 }),
    },
    burstable: {
      ...classCgroupValues(pods.filter((pod) => qosClass(pod) === "Burstable")),
      ...(limits && { memoryLimit: limits.burstable }),
      ...(isManaged && { memoryLow: protectsMemory ? requested.burstable : 0 }),
    },
    bestEffort: { ...classCgroupValues([]), ...(limits && { memoryLimit: limits.bestEffort }) },
  };
}

/** The limits of all pods together. Pure. */
export function nodeValues({ node, hugepageSizes }: LimitRules): CgroupValues {
  const values = nodeCgroupValues(node.allocatable, { pids: node.pids, hugepageSizes });
  return { ...values, ...(node.cpus !== undefined && { cpus: node.cpus }) };
}

/** Sums what pods request, by class. Pure. */
export function requestedMemory(pods: readonly Pod[]): RequestedMemory {
  const sum = (name: string): number =>
    pods.filter((pod) => qosClass(pod) === name).reduce((bytes, pod) => bytes + memoryRequest(pod), 0);
  return { guaranteed: sum("Guaranteed"), burstable: sum("Burstable") };
}

/** Each class leaves room for what the classes above it request. Undefined if the limits are not managed. */
function classLimits(
  requested: RequestedMemory,
  { qosReserved }: LimitRules,
): { readonly burstable: number; readonly bestEffort: number } | undefined {
  if (qosReserved === undefined) return undefined;
  const { percent, memory } = qosReserved;
  if (percent === 0 || memory === 0) return { burstable: -1, bestEffort: -1 };
  const share = (bytes: number): number => Math.floor((bytes * percent) / 100);
  const burstable = memory - share(requested.guaranteed);
  // -1 would mean no limit.
  return { burstable: Math.max(0, burstable), bestEffort: Math.max(0, burstable - share(requested.burstable)) };
}
