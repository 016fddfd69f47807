import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { nodesOf } from "../model/topology.ts";
import type { Device } from "./device.ts";
import { deviceHints, type HintFacts, hasTopology } from "./hints.ts";

function devices(nodes: Readonly<Record<string, readonly number[]>>): ReadonlyMap<string, Device> {
  return new Map(Object.entries(nodes).map(([id, of]) => [id, { id, isHealthy: true, nodes: of }]));
}

/** `0` or `01`, with `*` if preferred. */
function hintsOf(given: Omit<HintFacts, "reusable"> & Partial<HintFacts>): string[] {
  const hints = deviceHints({ reusable: [], ...given });
  return hints.map(({ numa, isPreferred }) => `${nodesOf(numa ?? 0n).join("")}${isPreferred ? "*" : ""}`);
}

const two = devices({ a: [0], b: [1] });
const NODES = [0, 1];
const cases = [
  {
    name: "one device of two nodes",
    given: { devices: two, amount: 1, available: ["a", "b"] },
    want: ["0*", "1*", "01"],
  },
  { name: "two devices of two nodes", given: { devices: two, amount: 2, available: ["a", "b"] }, want: ["01*"] },
  { name: "one is taken", given: { devices: two, amount: 1, available: ["b"] }, want: ["1*", "01"] },
  {
    name: "two of one node, of which one is taken: both nodes are possible, but not preferred",
    given: { devices: devices({ a: [0], b: [0], c: [1] }), amount: 2, available: ["a", "c"] },
    want: ["01"],
  },
  {
    name: "a device of both nodes",
    given: { devices: devices({ a: [0, 1], b: [0] }), amount: 2, available: ["a", "b"] },
    want: ["0*", "01"],
  },
  {
    name: "what is reused must be inside",
    given: { devices: two, amount: 1, available: ["b"], reusable: ["a"] },
    want: ["0*", "01"],
  },
  {
    name: "nodes without devices are left out",
    given: { devices: two, amount: 1, available: ["a", "b"], nodes: [0, 1, 2, 3] },
    want: ["0*", "1*", "01"],
  },
  {
    name: "nodes that the machine does not have are left out",
    given: { devices: devices({ a: [0], b: [9] }), amount: 1, available: ["a", "b"] },
    want: ["0*"],
  },
];

describe("hints for devices", () => {
  for (const { name, given, want } of cases) {
    test(name, () => assert.deepEqual(hintsOf({ nodes: NODES, ...given }), want));
  }

  test("there are none for devices without NUMA nodes", () => {
    assert.equal(hasTopology(devices({ a: [] })), false);
    assert.equal(hasTopology(two), true);
  });

  test("of 100,000 devices on eight nodes take no time that matters", () => {
    const many = new Map(
      Array.from({ length: 100_000 }, (_, at) => [`d${at}`, { id: `d${at}`, isHealthy: true, nodes: [at % 8] }]),
    );
    const cpuMs = countCpu();
    const hints = deviceHints({
      devices: many,
      available: [...many.keys()],
      reusable: [],
      amount: 1,
      nodes: [0, 1, 2, 3, 4, 5, 6, 7],
    });
    assert.equal(hints.length, 255);
    assert.ok(cpuMs() < 1000);
  });
});
