import { checksumOf, dumpMap, dumpStruct } from "../go-dump.ts";
import { OtherPolicyError } from "../other-policy-error.ts";
import { type MemoryBlock, MemoryState, type MemoryTable, type NodeMemory } from "./memory-state.ts";

/** The name of the file in the agent's directory, as in Kubernetes. */
export const MEMORY_STATE_FILE = "memory_manager_state";

/** What is persisted of the memory policy. */
export interface MemoryCheckpoint {
  readonly policy: string;
  readonly state: MemoryState;
  /** Write the format of the gate PodLevelResourceManagers also if no pod has memory as a whole. */
  readonly hasPods?: boolean;
}

/** Returns the state file of Kubernetes; with memory of whole pods it is the one of 1.36. */
export function encodeMemoryState({ policy, state, hasPods = false }: MemoryCheckpoint): string {
  const machineState = Object.fromEntries(
    [...state.nodes].map(([id, { assignments, tables, cells }]) => {
      const memoryMap = Object.fromEntries(
        sorted(tables).map(([type, { total, systemReserved, allocatable, reserved, free }]) => [
          type,
          { total, systemReserved, allocatable, reserved, free },
        ]),
      );
      return [id, { numberOfAssignments: assignments, memoryMap, cells }];
    }),
  );
  const entries = Object.fromEntries(
    sorted(state.entries).map(([uid, containers]) => {
      const of = sorted(containers).map(([name, blocks]) => [name, blocks.map(blockJson)] as const);
      return [uid, Object.fromEntries(of)];
    }),
  );
  const pods = sorted(state.podEntries).map(([uid, blocks]) => [uid, { memoryBlocks: blocks.map(blockJson) }]);
  const checksum = checksumOf(dumpOf(policy, state, { hasPods: hasPods || state.podEntries.size > 0 }));
  return JSON.stringify({
    policyName: policy,
    machineState,
    ...(state.entries.size > 0 && { entries }),
    ...(pods.length > 0 && { podEntries: Object.fromEntries(pods) }),
    checksum,
  });
}

/**
 * Parses a state file of any Kubernetes release. Throws an Error, in Kubernetes' words, if it is damaged or of another
 * policy.
 */
export function decodeMemoryState(text: string, policy: string): MemoryState {
  const file: unknown = JSON.parse(text);
  const found = field(file, "policyName");
  // As in Kubernetes, a file without a checksum counts as it is.
  const checksum = field(file, "checksum") ?? 0;
  if (typeof found !== "string" || typeof checksum !== "number") throw corrupted();
  const nodes = new Map(nodesIn(field(file, "machineState")));
  const entries = entriesIn(field(file, "entries"));
  const whole = new MemoryState(nodes, { entries, pods: podsIn(field(file, "podEntries")) });
  const hasPods = checksum === checksumOf(dumpOf(found, whole, { hasPods: true }));
  const dump = dumpOf(found, whole, { hasPods: false });
  // Releases differ in the structure's name.
  const versions = [dump, dump.replace("Checkpoint", "CheckpointV1")];
  if (checksum !== 0 && !hasPods && !versions.map(checksumOf).includes(checksum)) throw corrupted();
  if (found !== policy) {
    throw new OtherPolicyError(
      `[memorymanager] configured policy "${policy}" differs from state checkpoint policy "${found}"`,
    );
  }
  // Only the checksum of the newest format covers memory of whole pods.
  return hasPods ? whole : new MemoryState(nodes, { entries });
}

function dumpOf(
  policy: string,
  { nodes, entries, podEntries }: MemoryState,
  { hasPods }: { hasPods: boolean },
): string {
  const pods = [...entries].map(([uid, containers]) => {
    const of = [...containers].map(([name, blocks]) => [name, dumpBlocks(blocks)] as const);
    return [uid, dumpMap(of)] as const;
  });
  const whole = [...podEntries].map(
    ([uid, blocks]) => [uid, dumpStruct([["MemoryBlocks", `([]state.Block)${dumpBlocks(blocks)}`]])] as const,
  );
  return `(*state.MemoryManagerCheckpoint)${dumpStruct([
    ["PolicyName", `(string)${policy}`],
    ["MachineState", `(state.NUMANodeMap)${dumpMap([...nodes].map(([id, node]) => [id, dumpNode(node)] as const))}`],
    ["Entries", `(state.ContainerMemoryAssignments)${dumpMap(pods)}`],
    ...(hasPods ? [["PodEntries", `(state.PodMemoryAssignments)${dumpMap(whole)}`] as const] : []),
    ["Checksum", "(checksum.Checksum)0"],
  ])}`;
}

function dumpBlocks(blocks: readonly MemoryBlock[]): string {
  return `[${blocks.map(dumpBlock).join(" ")}]`;
}

function dumpNode({ assignments, tables, cells }: NodeMemory): string {
  return `<*>${dumpStruct([
    ["NumberOfAssignments", `(int)${assignments}`],
    [
      "MemoryMap",
      `(map[v1.ResourceName]*state.MemoryTable)${dumpMap([...tables].map(([type, table]) => [type, dumpTable(table)] as const))}`,
    ],
    ["Cells", `([]int)[${cells.join(" ")}]`],
  ])}`;
}

function dumpTable({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  return `<*>${dumpStruct([
    ["TotalMemSize", `(uint64)${total}`],
    ["SystemReserved", `(uint64)${systemReserved}`],
    ["Allocatable", `(uint64)${allocatable}`],
    ["Reserved", `(uint64)${reserved}`],
    ["Free", `(uint64)${free}`],
  ])}`;
}

function dumpBlock({ nodes, type, bytes }: MemoryBlock): string {
  return dumpStruct([
    ["NUMAAffinity", `([]int)[${nodes.join(" ")}]`],
    ["Type", `(v1.ResourceName)${type}`],
    ["Size", `(uint64)${bytes}`],
  ]);
}

function blockJson({ nodes, type, bytes }: MemoryBlock): unknown {
  return { numaAffinity: nodes, type, size: bytes };
}

function* nodesIn(value: unknown): Generator<[number, NodeMemory]> {
  for (const [id, node] of Object.entries(mapOf(value ?? {}))) {
    const tables = Object.entries(mapOf(field(node, "memoryMap") ?? {})).map(([type, table]): [string, MemoryTable] => [
      type,
      {
        total: numberOf(field(table, "total")),
        systemReserved: numberOf(field(table, "systemReserved")),
        allocatable: numberOf(field(table, "allocatable")),
        reserved: numberOf(field(table, "reserved")),
        free: numberOf(field(table, "free")),
      },
    ]);
    const assignments = numberOf(field(node, "numberOfAssignments"));
    yield [Number(id), { assignments, tables: new Map(tables), cells: numbersOf(field(node, "cells")) }];
  }
}

function entriesIn(value: unknown): readonly (readonly [string, ReadonlyMap<string, readonly MemoryBlock[]>])[] {
  return Object.entries(mapOf(value ?? {})).map(([uid, containers]) => {
    const of = Object.entries(mapOf(containers)).map(([name, blocks]) => [name, listOf(blocks).map(blockIn)] as const);
    return [uid, new Map(of)] as const;
  });
}

function podsIn(value: unknown): readonly (readonly [string, readonly MemoryBlock[]])[] {
  return Object.entries(mapOf(value ?? {})).map(
    ([uid, pod]) => [uid, listOf(field(pod, "memoryBlocks") ?? []).map(blockIn)] as const,
  );
}

function blockIn(value: unknown): MemoryBlock {
  const type = field(value, "type");
  if (typeof type !== "string") throw corrupted();
  return { nodes: numbersOf(field(value, "numaAffinity")), type, bytes: numberOf(field(value, "size")) };
}

function corrupted(): Error {
  return new Error("checkpoint is corrupted");
}

function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw corrupted();
  return value as Record<string, unknown>; // reason: an object
}

function field(value: unknown, name: string): unknown {
  const map = mapOf(value);
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw corrupted();
  return value;
}

function numbersOf(value: unknown): readonly number[] {
  return listOf(value).map(numberOf);
}

function numberOf(value: unknown): number {
  if (typeof value !== "number") throw corrupted();
  return value;
}

function sorted<V>(map: ReadonlyMap<string, V>): readonly (readonly [string, V])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
