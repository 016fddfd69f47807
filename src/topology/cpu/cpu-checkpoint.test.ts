import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import { decodeCpuState, encodeCpuState } from "./cpu-checkpoint.ts";
import { CpuState } from "./cpu-state.ts";

/** A file without a checksum, which counts as it is. */
function file(more: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ policyName: "static", defaultCpuSet: "0-1", checksum: 0, ...more });
}

function shown({ shared, entries, podEntries }: CpuState): unknown {
  const containers = [...entries].map(([uid, of]) => [
    uid,
    Object.fromEntries([...of].map(([n, c]) => [n, formatCpuSet(c)])),
  ]);
  return [formatCpuSet(shared), Object.fromEntries(containers), [...podEntries.keys()]];
}

describe("a state file of CPUs", () => {
  const of = (...names: readonly string[]): ReadonlyMap<string, ReadonlySet<number>> =>
    new Map(names.map((name) => [name, parseCpuSet("2")]));

  test("does not depend on the order in which CPUs were given", () => {
    const pods = (...uids: readonly string[]) => uids.map((uid) => [uid, parseCpuSet("2-3")] as const);
    const [one, other] = [
      new CpuState(parseCpuSet("0-1"), {
        entries: [
          ["b", of("y", "x")],
          ["a", of("z")],
        ],
        pods: pods("b", "a"),
      }),
      new CpuState(parseCpuSet("0-1"), {
        entries: [
          ["a", of("z")],
          ["b", of("x", "y")],
        ],
        pods: pods("a", "b"),
      }),
    ];
    assert.equal(encodeCpuState({ policy: "static", state: one }), encodeCpuState({ policy: "static", state: other }));
  });

  test("of CPUs that nobody has for himself lists no pods", () => {
    const document = JSON.parse(encodeCpuState({ policy: "static", state: new CpuState(parseCpuSet("0")) })) as object;
    assert.deepEqual(Object.keys(document), ["policyName", "defaultCpuSet", "checksum"]);
  });

  test("of the oldest format has containers by their ids", () => {
    const names = new Map([
      ["id-1", { uid: "u", name: "app" }],
      ["id-2", { uid: "u", name: "log" }],
      ["id-3", { uid: "v", name: "app" }],
    ]);
    const text = file({ entries: { "id-1": "2", "id-2": "3", "id-3": "4" } });
    assert.deepEqual(shown(decodeCpuState(text, "static", (id) => names.get(id))), [
      "0-1",
      { u: { app: "2", log: "3" }, v: { app: "4" } },
      [],
    ]);
    assert.throws(
      () => decodeCpuState(text, "static", (id) => (id === "id-3" ? undefined : names.get(id))),
      /^Error: failed to migrate checkpoint from v1 to v2: containerID 'id-3' not found in initial containers list$/,
    );
  });

  test("has CPUs of pods as a whole only if its checksum covers them", () => {
    const state = new CpuState(parseCpuSet("0-1"), { entries: [["u", of("app")]], pods: [["u", parseCpuSet("2-3")]] });
    const text = encodeCpuState({ policy: "static", state });
    assert.deepEqual(shown(decodeCpuState(text, "static")), ["0-1", { u: { app: "2" } }, ["u"]]);
    const unsigned = text.replace(/"checksum":\d+/, '"checksum":0');
    assert.deepEqual(shown(decodeCpuState(unsigned, "static")), ["0-1", { u: { app: "2" } }, []]);
    assert.throws(() => decodeCpuState(text.replace('"2-3"', '"2-4"'), "static"), /^Error: checkpoint is corrupted$/);
  });

  const damaged: readonly (readonly [string, string])[] = [
    ["nothing", "null"],
    ["a number", "7"],
    ["a policy that is a number", file({ policyName: 7 })],
    ["shared CPUs that are a number", file({ defaultCpuSet: 7 })],
    ["pods that are a list", file({ entries: [] })],
    ["a pod that is a number", file({ entries: { u: { app: "2" }, v: 7 } })],
    ["a pod that is nothing", file({ entries: { u: null } })],
    ["a container that has a number", file({ entries: { u: { app: "2", log: 3 } } })],
    ["pods of two formats", file({ entries: { u: "2", v: { app: "3" } } })],
    ["whole pods that are a list", file({ podEntries: [] })],
    ["a checksum that is a text", file({ checksum: "0" })],
    ["another checksum", file({ checksum: 1 })],
  ];
  for (const [name, text] of damaged) {
    test(`is damaged with ${name}`, () =>
      assert.throws(() => decodeCpuState(text, "static"), /^Error: checkpoint is corrupted$/));
  }

  test("tells which CPUs cannot be read", () => {
    const shared = file({ defaultCpuSet: "x" });
    assert.throws(() => decodeCpuState(shared, "static"), /^Error: could not parse default cpu set "x": /);
    const app = file({ entries: { u: { app: "x" } } });
    assert.throws(
      () => decodeCpuState(app, "static"),
      /^Error: could not parse cpuset "x" for container "app" in pod "u": /,
    );
  });
});
