import type { AgentOptions } from "../config/index.ts";
import { type CpuSet, intersection, NO_CPUS, sortedCpus } from "../model/cpu-set.ts";
import { hugePageResource, type MachineTopology } from "../model/machine-topology.ts";
import type { CpuReport, DeviceReport, Holding, MemoryReport, TopologyReport } from "../model/topology-report.ts";
import type { CpuPart } from "./cpu/compose-cpus.ts";
import type { MemoryPart } from "./memory/compose-memory.ts";
import type { TopologyRules } from "./topology-allocator.ts";

interface Facts {
  readonly machine: MachineTopology;
  readonly cpus: CpuPart;
  readonly memory: MemoryPart;
  readonly rules: TopologyRules;
  readonly devices?: (() => readonly DeviceReport[]) | undefined;
  podOf(uid: string): { readonly namespace: string; readonly pod: string };
}

type Policies = Pick<AgentOptions, "cpuManagerPolicy" | "memoryManagerPolicy" | "topologyManagerPolicy">;

/** The machine, and who has what of it now. */
export function topologyReport(facts: Facts, options: Policies): TopologyReport {
  const { machine, cpus, memory, rules } = facts;
  const isStatic = cpus.providers.length > 0;
  const exclusive = cpus.state.allExclusive();
  const useOf = (cpu: number): CpuReport["use"] => {
    if (exclusive.has(cpu)) return "exclusive";
    return cpus.reserved.has(cpu) ? "reserved" : isStatic ? "shared" : "any";
  };
  return {
    policies: {
      cpu: options.cpuManagerPolicy,
      memory: options.memoryManagerPolicy,
      topology: options.topologyManagerPolicy,
      scope: rules.scope,
    },
    cpus: machine.cpus.map((place) => ({ ...place, use: useOf(place.cpu) })),
    offline: machine.offline,
    nodes: machine.nodes.map((node) => ({ id: node.id, distances: node.distances, memory: memoryOf(node, memory) })),
    holdings: holdingsOf(facts),
    devices: facts.devices?.() ?? [],
  };
}

function memoryOf(node: MachineTopology["nodes"][number], { state }: MemoryPart): readonly MemoryReport[] {
  const tables = state.nodes.get(node.id)?.tables;
  const pools = node.hugePages.map(({ pageBytes, pages }) => ({
    type: hugePageResource(pageBytes),
    total: pageBytes * pages,
  }));
  return [{ type: "memory", total: node.memoryBytes }, ...pools].map((each) => {
    const table = tables?.get(each.type);
    return table === undefined ? each : { ...each, allocatable: table.allocatable, free: table.free };
  });
}

function holdingsOf({ cpus, memory, podOf }: Facts): readonly Holding[] {
  const uids = new Set([...cpus.state.holders(), ...memory.state.holders()]);
  return [...uids].flatMap((uid) => {
    const sets = cpus.state.ofPod(uid);
    const blocks = memory.state.entries.get(uid);
    return [...new Set([...sets.keys(), ...(blocks?.keys() ?? [])])].map((container) => ({
      uid,
      ...podOf(uid),
      container,
      cpus: sortedCpus(sets.get(container) ?? []),
      ...(cpus.state.podEntries.has(uid) && isShared(sets, container) && { isShared: true }),
      memory: blocks?.get(container) ?? [],
    }));
  });
}

/** True if it has everything that another container has: one that has CPUs for itself has none of the others'. */
function isShared(sets: ReadonlyMap<string, CpuSet>, container: string): boolean {
  const own = sets.get(container) ?? NO_CPUS;
  return [...sets].some(([name, cpus]) => name !== container && intersection(own, cpus).size === cpus.size);
}
