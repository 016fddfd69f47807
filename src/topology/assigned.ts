import type { AssignedCompute } from "../model/assigned-resources.ts";
import type { CpuPart } from "./cpu/compose-cpus.ts";
import type { MemoryPart } from "./memory/compose-memory.ts";

/** Exclusive CPUs and memory of NUMA nodes, as the pod resources API shows them; none without a policy. */
export function assignedCompute(
  cpus: Pick<CpuPart, "state" | "allocatable">,
  memory: { readonly state: Pick<MemoryPart["state"], "blocks" | "nodes"> },
): AssignedCompute {
  return {
    cpus: (uid, container) => [...(cpus.state.exclusive(uid, container) ?? [])],
    memory: (uid, container) => memory.state.blocks(uid, container) ?? [],
    allocatableCpus: () => [...cpus.allocatable],
    allocatableMemory: () =>
      [...memory.state.nodes].flatMap(([node, { tables }]) =>
        [...tables]
          .filter(([, { allocatable }]) => allocatable > 0)
          .map(([type, { allocatable }]) => ({ type, bytes: allocatable, nodes: [node] })),
      ),
  };
}
