import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeMemoryState, encodeMemoryState } from "./memory-checkpoint.ts";
import { MemoryState } from "./memory-state.ts";

const TABLE = { total: 10, systemReserved: 1, allocatable: 9, reserved: 2, free: 7 };
const NODE = { numberOfAssignments: 1, memoryMap: { memory: TABLE }, cells: [0] };
const BLOCK = { numaAffinity: [0], type: "memory", size: 2 };

/** A file without a checksum, which counts as it is. */
function file(more: Readonly<Record<string, unknown>> = {}): string {
  const entries = { u: { app: [BLOCK] } };
  return JSON.stringify({ policyName: "Static", machineState: { 0: NODE }, entries, checksum: 0, ...more });
}

describe("a state file of memory", () => {
  const blocks = [{ nodes: [0], type: "memory", bytes: 2 }];
  const of = (...names: readonly string[]) => new Map(names.map((name) => [name, blocks] as const));
  const nodes = (...types: readonly string[]) =>
    new Map([[0, { assignments: 1, cells: [0], tables: new Map(types.map((type) => [type, { ...TABLE }])) }]]);
  const text = (...state: ConstructorParameters<typeof MemoryState>) =>
    encodeMemoryState({ policy: "Static", state: new MemoryState(...state) });

  test("does not depend on the order in which memory was given", () => {
    const one = text(nodes("memory", "hugepages-2Mi"), {
      entries: [
        ["b", of("y", "x")],
        ["a", of("z")],
      ],
      pods: [
        ["b", blocks],
        ["a", blocks],
      ],
    });
    const other = text(nodes("hugepages-2Mi", "memory"), {
      entries: [
        ["a", of("z")],
        ["b", of("x", "y")],
      ],
      pods: [
        ["a", blocks],
        ["b", blocks],
      ],
    });
    assert.equal(one, other);
  });

  test("of memory that nobody has for himself lists no pods", () => {
    assert.deepEqual(Object.keys(JSON.parse(text(nodes("memory"))) as object), [
      "policyName",
      "machineState",
      "checksum",
    ]);
  });

  test("is read, with memory of pods as a whole only if its checksum covers them", () => {
    const state = decodeMemoryState(file(), "Static");
    assert.deepEqual([[...state.nodes], [...state.entries]], [[...nodes("memory")], [["u", of("app")]]]);
    const whole = text(nodes("memory"), { entries: [["u", of("app")]], pods: [["u", blocks]] });
    assert.deepEqual([...decodeMemoryState(whole, "Static").podEntries], [["u", blocks]]);
    const unsigned = whole.replace(/"checksum":\d+/, '"checksum":0');
    for (const each of [unsigned, whole.replace(/,"checksum":\d+/, "")])
      assert.deepEqual([...decodeMemoryState(each, "Static").podEntries], []);
    assert.throws(
      () => decodeMemoryState(whole.replace('"size":2', '"size":3'), "Static"),
      /^Error: checkpoint is corr/,
    );
  });

  const damaged: readonly (readonly [string, string])[] = [
    ["nothing", "null"],
    ["a number", "7"],
    ["a list", "[]"],
    ["a policy that is a number", file({ policyName: 7 })],
    ["a checksum that is a text", file({ checksum: "0" })],
    ["another checksum", file({ checksum: 1 })],
    ["nodes that are a list", file({ machineState: [] })],
    ["a node that is a number", file({ machineState: { 0: 7 } })],
    ["a node without a number of allocations", file({ machineState: { 0: { ...NODE, numberOfAssignments: "1" } } })],
    ["a node whose group is a text", file({ machineState: { 0: { ...NODE, cells: "0" } } })],
    ["a node whose group has texts", file({ machineState: { 0: { ...NODE, cells: ["0"] } } })],
    [
      "memory that is a text",
      file({ machineState: { 0: { ...NODE, memoryMap: { memory: { ...TABLE, free: "7" } } } } }),
    ],
    ["pods that are a list", file({ entries: [] })],
    ["a pod that is a number", file({ entries: { u: 7 } })],
    ["a container that has a number", file({ entries: { u: { app: 7 } } })],
    ["a block of no kind", file({ entries: { u: { app: [{ ...BLOCK, type: 7 }] } } })],
    ["a block whose size is a text", file({ entries: { u: { app: [{ ...BLOCK, size: "2" }] } } })],
    ["a block on no list of nodes", file({ entries: { u: { app: [{ ...BLOCK, numaAffinity: 0 }] } } })],
    ["whole pods that are a list", file({ podEntries: [] })],
  ];
  for (const [name, damage] of damaged) {
    test(`is damaged with ${name}`, () =>
      assert.throws(() => decodeMemoryState(damage, "Static"), /^Error: checkpoint is corrupted$/));
  }

  test("of another policy is refused", () => {
    const why =
      /^OtherPolicyError: \[memorymanager\] configured policy "None" differs from state checkpoint policy "Static"$/;
    assert.throws(() => decodeMemoryState(file(), "None"), why);
  });
});
