import { type MemoryBlock, MemoryState, type NodeMap, type NodeMemory, takeMemory } from "./memory-state.ts";

/**
 * Returns the state to begin with, `idle` if nothing was persisted. Throws an Error, in Kubernetes' words, if what was
 * persisted does not fit to this machine and its reservations.
 */
export function validMemoryState(idle: NodeMap, state: MemoryState): MemoryState {
  if (state.nodes.size === 0) {
    if (state.entries.size === 0) return new MemoryState(idle);
    throw new Error("[memorymanager] machine state can not be empty when it has memory assignments");
  }
  const expected = new Map([...idle].map(([id, node]) => [id, copyOf(node)]));
  for (const [uid, containers] of state.entries) {
    for (const [name, blocks] of containers) for (const block of blocks) expect(expected, block, { uid, name });
  }
  if (!isSame(state.nodes, expected)) {
    throw new Error("[memorymanager] the expected machine state is different from the real one");
  }
  return state;
}

function expect(nodes: NodeMap, block: MemoryBlock, { uid, name }: { uid: string; name: string }): void {
  for (const id of block.nodes) {
    const node = nodes.get(id);
    const about = `[memorymanager] (pod: ${uid}, container: ${name}) the memory assignment uses`;
    if (node === undefined) throw new Error(`${about} the NUMA that does not exist`);
    if (!node.tables.has(block.type)) throw new Error(`${about} memory resource that does not exist`);
  }
  takeMemory(nodes, block);
}

/** The free memory of the nodes of a group may be divided otherwise: only the sums count. */
function isSame(real: NodeMap, expected: NodeMap): boolean {
  if (real.size !== expected.size) return false;
  return [...real].every(([id, node]) => {
    const other = expected.get(id);
    if (other === undefined || node.assignments !== other.assignments) return false;
    if (node.cells.length !== other.cells.length || !node.cells.every((cell) => other.cells.includes(cell)))
      return false;
    if (node.tables.size !== other.tables.size) return false;
    return [...node.tables].every(([type, table]) => {
      const wanted = other.tables.get(type);
      if (wanted === undefined) return false;
      const isFixed = (["total", "systemReserved", "allocatable"] as const).every((key) => table[key] === wanted[key]);
      return (
        isFixed &&
        (["free", "reserved"] as const).every((key) => {
          const sum = (nodes: NodeMap): number =>
            node.cells.reduce((all, cell) => all + (nodes.get(cell)?.tables.get(type)?.[key] ?? 0), 0);
          return sum(real) === sum(expected);
        })
      );
    });
  });
}

function copyOf({ assignments, tables, cells }: NodeMemory): NodeMemory {
  return { assignments, cells, tables: new Map([...tables].map(([type, table]) => [type, { ...table }])) };
}
