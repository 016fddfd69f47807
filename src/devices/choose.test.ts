import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { numaMask } from "../model/topology.ts";
import { type ChoiceFacts, chooseDevices } from "./choose.ts";
import type { Device } from "./device.ts";

/** `a0`: the device a of NUMA node 0; `x`: one without. */
function devices(...ids: readonly string[]): ReadonlyMap<string, Device> {
  return new Map(ids.map((id) => [id, { id, isHealthy: true, nodes: id.slice(1).split("").map(Number) }]));
}

const ALL = ["a0", "b0", "c1", "d1", "x", "y"];

function facts(given: Partial<ChoiceFacts>): ChoiceFacts {
  const of = { resource: "example.com/d", required: 1, reusable: [], available: () => ALL, affinity: undefined };
  return { ...of, devices: devices(...ALL), ...given };
}

const cases: { name: string; given: Partial<ChoiceFacts>; ids: readonly string[] }[] = [
  { name: "devices of init containers come first", given: { reusable: ["z"], required: 1 }, ids: ["z"] },
  { name: "then free ones", given: { reusable: ["z"], required: 3 }, ids: ["z", "a0", "b0"] },
  { name: "what the plugin prefers", given: { preferred: ["y", "c1"], required: 2 }, ids: ["y", "c1"] },
  { name: "is completed if it is too little", given: { preferred: ["y"], required: 2 }, ids: ["y", "a0"] },
  { name: "is cut if it is too much", given: { preferred: ["y", "x", "c1"], required: 2 }, ids: ["y", "x"] },
  { name: "is ignored if it is not free", given: { preferred: ["q", "y"], required: 1 }, ids: ["y"] },
  { name: "devices of the affinity", given: { affinity: numaMask([1]), required: 2 }, ids: ["c1", "d1"] },
  {
    name: "of the affinity the preferred ones",
    given: { affinity: numaMask([1]), preferred: ["a0", "d1"] },
    ids: ["d1"],
  },
  {
    name: "all of the affinity before others, those without a node last",
    given: { affinity: numaMask([1]), required: 5, preferred: [] },
    ids: ["c1", "d1", "a0", "b0", "x"],
  },
  {
    name: "one of several nodes counts as aligned if one of them is wanted",
    given: { affinity: numaMask([1]), available: () => ["b0", "e12"], devices: devices("b0", "e12") },
    ids: ["e12"],
  },
  {
    name: "those of other nodes come before those without a node",
    given: { affinity: numaMask([1]), available: () => ["x", "a0"] },
    ids: ["a0"],
  },
  {
    name: "the plugin chooses among the rest",
    given: { affinity: numaMask([1]), required: 3, preferred: ["y"] },
    ids: ["c1", "d1", "y"],
  },
];

describe("a choice of devices", () => {
  for (const { name, given, ids } of cases) {
    test(name, () => {
      const choice = chooseDevices(facts({ preferred: [], ...given }));
      assert.deepEqual(choice, { kind: "chosen", ids });
    });
  }

  test("is the plugin's where it matters: it gets what is offered and what must be included", () => {
    const given = facts({ reusable: ["z"], required: 2, affinity: numaMask([0]) });
    assert.deepEqual(chooseDevices(given), { kind: "open", offered: ["z", "a0", "b0"], included: ["z"] });
  });

  test("of all that are aligned needs no plugin", () => {
    const given = facts({ required: 2, affinity: numaMask([0]) });
    assert.deepEqual(chooseDevices(given), { kind: "chosen", ids: ["a0", "b0"] });
  });

  test("among more devices of init containers than are needed needs no plugin", () => {
    const given = facts({ reusable: ["z", "y"], required: 1 });
    assert.deepEqual(chooseDevices(given), { kind: "chosen", ids: ["z"] });
  });

  test("is impossible with too few, in the words of Kubernetes", () => {
    const why = "requested number of devices unavailable for example.com/d. Requested: 7, Available: 6";
    assert.deepEqual(chooseDevices(facts({ reusable: ["z"], required: 8 })), { kind: "short", why });
  });
});
