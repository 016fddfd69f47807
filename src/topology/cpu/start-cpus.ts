import { ConfigurationError } from "../../config/index.ts";
import { type CpuSet, formatCpuSet, intersection, isSameSet, unionOf, without } from "../../model/cpu-set.ts";
import type { TopologyPolicy } from "../merge-hints.ts";
import type { CpuLayout } from "./cpu-layout.ts";
import { cpuOptionsOf } from "./cpu-options.ts";
import { CpuState } from "./cpu-state.ts";
import { chooseCpus, type StaticCpuRules } from "./static-cpus.ts";

/** What the static policy is made from. */
export interface CpuSettings {
  readonly policyOptions: Readonly<Record<string, string>>;
  /** CPUs that are reserved by name; empty: the lowest ones, as many as `reservedMilli` needs. */
  readonly reserved: CpuSet;
  readonly reservedMilli: number;
  readonly topologyPolicy: TopologyPolicy;
}

/** Resolves options and reserved CPUs. Throws a ConfigurationError for what this machine cannot do. */
export function staticCpuRules(layout: CpuLayout, settings: CpuSettings): StaticCpuRules {
  const options = cpuOptionsOf(settings.policyOptions);
  if (options.alignsBySocket) checkSocketAlignment(layout, settings.topologyPolicy);
  const count = Math.ceil(settings.reservedMilli / 1000);
  if (count === 0) {
    const why = "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero";
    throw new ConfigurationError("Impossible", `[cpumanager] ${why}`);
  }
  const available = layout.all;
  const reserved =
    settings.reserved.size > 0
      ? settings.reserved
      : chooseCpus({ layout, available }, Math.min(count, available.size), options);
  if (reserved.size !== count) {
    const size = `size of ${formatCpuSet(reserved)} did not equal ${count}`;
    throw new ConfigurationError("Impossible", `[cpumanager] unable to reserve the required amount of CPUs (${size})`);
  }
  const unknown = [...reserved].find((cpu) => !layout.all.has(cpu));
  if (unknown !== undefined) {
    const why = `unknown CPU ID: ${unknown}`;
    throw new ConfigurationError(
      "Impossible",
      `[cpumanager] unable to build the reserved physical CPUs from the reserved set: ${why}`,
    );
  }
  return { options, reserved };
}

/** Returns the state to begin with. Throws an Error, in Kubernetes' words, if what was persisted cannot be continued. */
export function validCpuState(layout: CpuLayout, rules: StaticCpuRules, state: CpuState): CpuState {
  const all = rules.options.reservesStrictly ? without(layout.all, rules.reserved) : layout.all;
  if (state.shared.size === 0) {
    if ([...state.holders()].length === 0) return new CpuState(all);
    // With strict reservation containers may have all the rest for themselves; the original does not start then.
    if (!rules.options.reservesStrictly) throw new Error("default cpuset cannot be empty");
  }
  checkReserved(rules, state.shared);
  for (const [uid, containers] of state.entries) {
    for (const [name, cpus] of containers) {
      if (intersection(cpus, state.shared).size === 0) continue;
      const sets = `cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${formatCpuSet(state.shared)}"`;
      throw new Error(`pod: ${uid}, container: ${name} ${sets}`);
    }
  }
  for (const [uid, cpus] of state.podEntries) {
    if (intersection(cpus, state.shared).size === 0) continue;
    const sets = `cpuset: "${formatCpuSet(cpus)}" overlaps with default cpuset "${formatCpuSet(state.shared)}"`;
    throw new Error(`pod: ${uid} ${sets}`);
  }
  const known = unionOf(state.shared, state.allExclusive());
  if (!isSameSet(known, all)) {
    const sets = `"${formatCpuSet(all)}" doesn't match with CPUs in state "${formatCpuSet(known)}"`;
    throw new Error(`current set of available CPUs ${sets}`);
  }
  return state;
}

function checkReserved({ options, reserved }: StaticCpuRules, shared: CpuSet): void {
  const common = intersection(reserved, shared);
  if (options.reservesStrictly) {
    if (common.size === 0) return;
    const sets = `"${formatCpuSet(common)}" are present in defaultCpuSet: "${formatCpuSet(shared)}"`;
    throw new Error(`some of strictly reserved cpus: ${sets}`);
  }
  if (common.size === reserved.size) return;
  const sets = `"${formatCpuSet(reserved)}" are present in defaultCpuSet: "${formatCpuSet(shared)}"`;
  throw new Error(`not all reserved cpus: ${sets}`);
}

function checkSocketAlignment(layout: CpuLayout, policy: TopologyPolicy): void {
  if (policy === "single-numa-node") {
    throw new ConfigurationError(
      "Impossible",
      `topology manager ${policy} policy is incompatible with CPUManager align-by-socket policy option`,
    );
  }
  if (layout.groups.socket.size > layout.groups.numa.size) {
    throw new ConfigurationError(
      "Impossible",
      "align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
    );
  }
}
