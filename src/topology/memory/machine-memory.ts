import { hugePageResource, type NumaNode } from "../../model/machine-topology.ts";
import {
  type Amount,
  addAmounts,
  compareAmounts,
  formatQuantity,
  parseQuantity,
  wholeValue,
  ZERO,
} from "../../model/quantity.ts";
import type { MemoryTable, NodeMap } from "./memory-state.ts";

/** Memory of a NUMA node that no container gets for itself. */
export interface MemoryReservation {
  readonly numaNode: number;
  readonly limits: Readonly<Record<string, string>>;
}

/** The memory of an idle machine. Pure. */
export function idleMemory(nodes: readonly NumaNode[], reserved: readonly MemoryReservation[]): NodeMap {
  return new Map(
    nodes.map(({ id, memoryBytes, hugePages }) => {
      const own = reserved.filter(({ numaNode }) => numaNode === id);
      const limits = Object.fromEntries(own.flatMap((each) => Object.entries(each.limits)));
      const table = (name: string, total: number, other = 0): [string, MemoryTable] => {
        const systemReserved = Object.hasOwn(limits, name) ? wholeValue(parseQuantity(limits[name] ?? "0")) : 0;
        const allocatable = Math.max(0, total - systemReserved - other);
        return [name, { total, systemReserved, allocatable, reserved: 0, free: allocatable }];
      };
      const pools = hugePages.map(({ pageBytes, pages }) => table(hugePageResource(pageBytes), pageBytes * pages));
      const huge = pools.reduce((sum, [, { total }]) => sum + total, 0);
      return [id, { assignments: 0, tables: new Map([...pools, table("memory", memoryBytes, huge)]), cells: [id] }];
    }),
  );
}

/**
 * Checks the reservations of the NUMA nodes: together they must be what the node as a whole reserves. Returns why they
 * cannot be used, in Kubernetes' words; undefined if they can. Pure.
 */
export function reservationProblem(
  nodes: readonly NumaNode[],
  reserved: readonly MemoryReservation[],
  ofNode: Readonly<Record<string, Amount>>,
): string | undefined {
  const sums = new Map<string, Amount>();
  for (const { numaNode, limits } of reserved) {
    if (!nodes.some(({ id }) => id === numaNode)) {
      return `the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`;
    }
    for (const [name, text] of Object.entries(limits)) {
      sums.set(name, addAmounts(parseQuantity(text), sums.get(name) ?? ZERO));
    }
  }
  const isCounted = (name: string): boolean => name === "memory" || name.startsWith("hugepages-");
  const names = new Set([...sums.keys(), ...Object.keys(ofNode).filter(isCounted)]);
  for (const name of names) {
    const [own, whole] = [sums.get(name) ?? ZERO, ofNode[name] ?? ZERO];
    if (compareAmounts(own, whole) === 0) continue;
    const amounts = `the total amount "${formatQuantity(own)}" of type "${name}" is not equal to the value`;
    return `${amounts} "${formatQuantity(whole)}" determined by Node Allocatable feature`;
  }
  const memory = sums.get("memory");
  if (memory === undefined || compareAmounts(memory, ZERO) <= 0) {
    return "[memorymanager] you should specify the system reserved memory";
  }
  return undefined;
}
