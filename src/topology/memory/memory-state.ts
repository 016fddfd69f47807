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

/** Which memory belongs to whom. */
export class MemoryState {
  private readonly pods = new Map<string, Map<string, readonly MemoryBlock[]>>();

  constructor(
    readonly nodes: NodeMap = new Map(),
    entries: Iterable<readonly [string, ReadonlyMap<string, readonly MemoryBlock[]>]> = [],
  ) {
    for (const [uid, containers] of entries) this.pods.set(uid, new Map(containers));
  }

  get entries(): ReadonlyMap<string, ReadonlyMap<string, readonly MemoryBlock[]>> {
    return this.pods;
  }

  blocks(uid: string, container: string): readonly MemoryBlock[] | undefined {
    return this.pods.get(uid)?.get(container);
  }

  setBlocks(uid: string, container: string, blocks: readonly MemoryBlock[]): void {
    const containers = this.pods.get(uid) ?? new Map<string, readonly MemoryBlock[]>();
    this.pods.set(uid, containers.set(container, blocks));
  }

  delete(uid: string, container: string): void {
    const containers = this.pods.get(uid);
    containers?.delete(container);
    if (containers?.size === 0) this.pods.delete(uid);
  }
}

/** Takes an amount of the nodes in their order, and marks them as one group. */
export function takeMemory(nodes: NodeMap, { nodes: cells, type, bytes }: MemoryBlock): void {
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
