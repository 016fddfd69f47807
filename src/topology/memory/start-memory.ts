import {
  type MemoryBlock,
  MemoryState,
  type MemoryTable,
  type NodeMap,
  type NodeMemory,
  takeMemory,
} from "./memory-state.ts";

/** The state to begin with, and whether what was persisted had lost count. */
interface StartState {
  readonly state: MemoryState;
  readonly isRecounted: boolean;
}

/**
 * Returns the state to begin with: idle if nothing was persisted. What nodes have free is counted anew from what
 * containers have, if it is not what was persisted: releases of the original lose count where memory of one node and of
 * several is mixed, and do not start then. Throws an Error, in Kubernetes' words, if what was persisted does not fit to
 * this machine and its reservations.
 */
export function validMemoryState(idle: NodeMap, state: MemoryState): StartState {
  if (state.nodes.size === 0) {
    if ([...state.holders()].length === 0) return { state: new MemoryState(idle), isRecounted: false };
    throw new Error("[memorymanager] machine state can not be empty when it has memory assignments");
  }
  if (!isSameMachine(state.nodes, idle)) throw new DifferentMachine();
  const counted = new Map([...idle].map(([id, node]) => [id, copyOf(node)]));
  for (const [uid, blocks] of state.podEntries) for (const block of blocks) count(counted, block, { uid, name: "" });
  for (const [uid, containers] of state.entries) {
    if (state.podEntries.has(uid)) continue;
    for (const [name, blocks] of containers) for (const block of blocks) count(counted, block, { uid, name });
  }
  if (isSameUse(state.nodes, counted)) return { state, isRecounted: false };
  return { state: new MemoryState(counted, { entries: state.entries, pods: state.podEntries }), isRecounted: true };
}

class DifferentMachine extends Error {
  constructor() {
    super("[memorymanager] the expected machine state is different from the real one");
  }
}

function count(nodes: NodeMap, block: MemoryBlock, { uid, name }: { uid: string; name: string }): void {
  for (const id of block.nodes) {
    const node = nodes.get(id);
    const about = `[memorymanager] (pod: ${uid}, container: ${name}) the memory assignment uses`;
    if (node === undefined) throw new Error(`${about} the NUMA that does not exist`);
    // An earlier version of this agent recorded 0 bytes of huge pages that the machine does not have.
    if (block.bytes > 0 && !node.tables.has(block.type))
      throw new Error(`${about} memory resource that does not exist`);
  }
  // Containers have more than there is: the machine was another one.
  if (takeMemory(nodes, block) > 0) throw new DifferentMachine();
}

/** True if the nodes have what they had, and the same is reserved of them. */
function isSameMachine(real: NodeMap, idle: NodeMap): boolean {
  if (real.size !== idle.size) return false;
  return [...real].every(([id, { tables }]) => {
    const other = idle.get(id)?.tables;
    return other?.size === tables.size && [...tables].every(([type, table]) => isSameTable(table, other.get(type)));
  });
}

function isSameTable(table: MemoryTable, other: MemoryTable | undefined): boolean {
  return (["total", "systemReserved", "allocatable"] as const).every((key) => table[key] === other?.[key]);
}

/** The free memory of the nodes of a group may be divided otherwise: only the sums count. */
function isSameUse(real: NodeMap, counted: NodeMap): boolean {
  return [...real].every(([id, node]) => {
    const other = counted.get(id);
    if (other === undefined || node.assignments !== other.assignments) return false;
    if (node.cells.length !== other.cells.length || !node.cells.every((cell) => other.cells.includes(cell)))
      return false;
    return [...node.tables.keys()].every((type) =>
      (["free", "reserved"] as const).every((key) => {
        const sum = (nodes: NodeMap): number =>
          node.cells.reduce((all, cell) => all + (nodes.get(cell)?.tables.get(type)?.[key] ?? 0), 0);
        return sum(real) === sum(counted);
      }),
    );
  });
}

function copyOf({ assignments, tables, cells }: NodeMemory): NodeMemory {
  return { assignments, cells, tables: new Map([...tables].map(([type, table]) => [type, { ...table }])) };
}
