/** Memory of one kind (`memory`, `hugepages-2Mi`) on a NUMA node, in bytes. */
export interface MemoryTable {
  readonly total: number;
  readonly systemReserved: number;
  readonly allocatable: number;
  reserved: number;
  free: number;
}

/** What a NUMA node has, and for how many allocations it is used. */
export interface NodeMemory {
  assignments: number;
  readonly tables: Map<string, MemoryTable>;
  /** The nodes that allocations on this one span, itself included. */
  cells: readonly number[];
}

/** An amount of one kind of memory that a container has on these nodes together. */
export interface MemoryBlock {
  readonly nodes: readonly number[];
  readonly type: string;
  readonly bytes: number;
}

export type NodeMap = ReadonlyMap<number, NodeMemory>;

type Blocks = readonly MemoryBlock[];

/** Memory of single containers by their pod's UID and their name, and of whole pods by UID. */
interface Assignments {
  readonly entries?: Iterable<readonly [string, ReadonlyMap<string, Blocks>]>;
  readonly pods?: Iterable<readonly [string, Blocks]>;
}

/** Which memory belongs to whom. What containers of a whole pod have is a part of what the pod has. */
export class MemoryState {
  private readonly containers = new Map<string, Map<string, Blocks>>();
  private readonly pods: Map<string, Blocks>;

  constructor(
    readonly nodes: NodeMap = new Map(),
    { entries = [], pods = [] }: Assignments = {},
  ) {
    for (const [uid, containers] of entries) this.containers.set(uid, new Map(containers));
    this.pods = new Map(pods);
  }

  get entries(): ReadonlyMap<string, ReadonlyMap<string, Blocks>> {
    return this.containers;
  }

  /** What pods have as a whole. */
  get podEntries(): ReadonlyMap<string, Blocks> {
    return this.pods;
  }

  blocks(uid: string, container: string): Blocks | undefined {
    return this.containers.get(uid)?.get(container);
  }

  setBlocks(uid: string, container: string, blocks: Blocks): void {
    const containers = this.containers.get(uid) ?? new Map<string, Blocks>();
    this.containers.set(uid, containers.set(container, blocks));
  }

  setPodBlocks(uid: string, blocks: Blocks): void {
    this.pods.set(uid, blocks);
  }

  delete(uid: string, container: string): void {
    const containers = this.containers.get(uid);
    containers?.delete(container);
    if (containers?.size === 0) this.containers.delete(uid);
  }

  deletePod(uid: string): void {
    this.containers.delete(uid);
    this.pods.delete(uid);
  }

  /** UIDs of pods that have memory. */
  holders(): Iterable<string> {
    return new Set([...this.containers.keys(), ...this.pods.keys()]);
  }
}

/** Takes an amount of the nodes in their order, and marks them as one group. Returns how much they did not have. */
export function takeMemory(nodes: NodeMap, { nodes: cells, type, bytes }: MemoryBlock): number {
  let rest = bytes;
  for (const id of cells) {
    const node = nodes.get(id);
    if (node === undefined) continue;
    node.assignments++;
    node.cells = cells;
    const table = node.tables.get(type);
    if (table === undefined || rest === 0) continue;
    const taken = Math.min(table.free, rest);
    table.reserved += taken;
    table.free -= taken;
    rest -= taken;
  }
  return rest;
}

/** The opposite of `takeMemory`. */
export function giveMemory(nodes: NodeMap, { nodes: cells, type, bytes }: MemoryBlock): void {
  let rest = bytes;
  for (const id of cells) {
    const node = nodes.get(id);
    if (node === undefined) continue;
    node.assignments--;
    if (node.assignments === 0) node.cells = [id];
    const table = node.tables.get(type);
    if (table === undefined || rest === 0) continue;
    const given = Math.min(table.reserved, rest);
    table.free += given;
    table.reserved -= given;
    rest -= given;
  }
}
