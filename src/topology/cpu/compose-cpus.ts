import { type AgentOptions, ConfigurationError } from "../../config/index.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type CpuSet, NO_CPUS, without } from "../../model/cpu-set.ts";
import type { MachineTopology } from "../../model/machine-topology.ts";
import { milliValue, parseQuantity } from "../../model/quantity.ts";
import type { HintProvider } from "../../model/topology.ts";
import type { Demand } from "../demand.ts";
import type { TopologyPolicy } from "../merge-hints.ts";
import type { TopologyCounters } from "../metrics.ts";
import { OtherPolicyError } from "../other-policy-error.ts";
import type { AllocationCounters } from "../pinning-metrics.ts";
import { unreadableState, validated } from "../state-problem.ts";
import { type StateFiles, StateWriter } from "../state-writer.ts";
import { CPU_STATE_FILE, decodeCpuState, encodeCpuState, type FindContainer } from "./cpu-checkpoint.ts";
import { CpuLayout } from "./cpu-layout.ts";
import { cpuMetrics } from "./cpu-metrics.ts";
import { CpuState } from "./cpu-state.ts";
import { staticCpuRules, validCpuState } from "./start-cpus.ts";
import { StaticCpus } from "./static-cpus.ts";

/** What the CPU policy is built from. */
export interface CpuParts {
  readonly options: AgentOptions;
  readonly machine: MachineTopology;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly files: StateFiles;
  readonly demand: Demand;
  readonly allocations: AllocationCounters;
  /** The gate PodLevelResourceManagers. */
  readonly managesPodLevel: boolean;
  readonly topology: TopologyCounters;
  readonly reserved: CpuSet;
  resources(): Readonly<Record<"capacity" | "allocatable", Readonly<Record<string, string>>>>;
  readonly observer: {
    list(): Iterable<{ readonly uid: string; readonly containers: Iterable<{ id: string; name: string }> }>;
  };
  /** The shared pool has changed. */
  changed(): void;
}

/** The CPU policy of this run. */
export interface CpuPart {
  readonly state: CpuState;
  /** Never for a single container; empty without the policy static. */
  readonly reserved: CpuSet;
  /** CPUs that containers can have for themselves; empty without the policy static. */
  readonly allocatable: CpuSet;
  readonly providers: readonly HintProvider[];
}

/** Builds the CPU policy. Throws a ConfigurationError if this machine or the persisted state does not allow it. */
export function composeCpus(parts: CpuParts): CpuPart {
  const { options, metrics, topology } = parts;
  const layout = new CpuLayout(parts.machine);
  const isStatic = options.cpuManagerPolicy === "static";
  const names = Object.keys(options.cpuManagerPolicyOptions);
  if (!isStatic && names.length > 0)
    throw new ConfigurationError("Impossible", `None policy: received unsupported options: ${names.join(", ")}`);
  const rules = isStatic ? staticCpuRules(layout, settingsOf(parts)) : undefined;
  const loaded = loadState(parts);
  const state = rules === undefined ? loaded : validated(() => validCpuState(layout, rules, loaded));
  const path = pathOf(parts);
  const text = (): string =>
    encodeCpuState({ policy: options.cpuManagerPolicy, state, hasPods: parts.managesPodLevel });
  const writer = new StateWriter(parts, { path, text });
  writer.saveLater();
  const available = (): CpuSet => without(state.shared, rules?.reserved ?? NO_CPUS);
  const counted = cpuMetrics(metrics, {
    sharedPool: () => available().size * 1000,
    exclusive: () => {
      const counts = layout.count(state.allExclusive(), "numa");
      return new Map([...layout.groups.numa.keys()].map((node) => [node, counts.get(node) ?? 0]));
    },
  });
  if (rules === undefined) return { state, reserved: NO_CPUS, allocatable: NO_CPUS, providers: [] };
  for (const boundary of ["physical_cpu", "uncore_cache"] as const) topology.declareAligned("container", boundary);
  const provider = new StaticCpus(
    { ...parts, layout, state, writer, counted: { ...counted, ...topology }, changed: () => parts.changed() },
    rules,
  );
  const allocatable = without(layout.all, rules.reserved);
  return { state, reserved: rules.reserved, allocatable, providers: [provider] };
}

function settingsOf({ options, reserved, resources }: CpuParts) {
  const { capacity, allocatable } = resources();
  const milli = (from: Readonly<Record<string, string>>): number => milliValue(parseQuantity(from["cpu"] ?? "0"));
  return {
    policyOptions: options.cpuManagerPolicyOptions,
    reserved,
    reservedMilli: milli(capacity) - milli(allocatable),
    topologyPolicy: options.topologyManagerPolicy as TopologyPolicy, // reason: the option has no other values
  };
}

function loadState(parts: CpuParts): CpuState {
  const { options, files, observer, log } = parts;
  const path = pathOf(parts);
  const find: FindContainer = (id) => {
    for (const { uid, containers } of observer.list()) {
      for (const container of containers) if (container.id === id) return { uid, name: container.name };
    }
    return undefined;
  };
  try {
    const text = files.read(path);
    return text === undefined ? new CpuState() : decodeCpuState(text, options.cpuManagerPolicy, find);
  } catch (error) {
    // Nobody has CPUs of his own: a file that is damaged is written anew.
    if (options.cpuManagerPolicy === "none" && !(error instanceof OtherPolicyError)) {
      log.warn("Ignored damaged state file", { path, error: messageOf(error) });
      return new CpuState();
    }
    throw unreadableState(error, "CPU", path);
  }
}

function pathOf({ options }: CpuParts): string {
  return `${options.rootDir}/${CPU_STATE_FILE}`;
}
