import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { nodesOf } from "../model/topology.ts";
import type { Device } from "./device.ts";
import { DeviceMasks } from "./device-masks.ts";
import { deviceHints, hasTopology } from "./hints.ts";

function devices(nodes: Readonly<Record<string, readonly number[]>>): ReadonlyMap<string, Device> {
  return new Map(Object.entries(nodes).map(([id, of]) => [id, { id, isHealthy: true, nodes: of }]));
}

interface Given {
  readonly devices: ReadonlyMap<string, Device>;
  readonly amount: number;
  readonly available: readonly string[];
  readonly reusable?: readonly string[];
  readonly nodes: readonly number[];
}

function hintsFor({ devices, amount, available, reusable = [], nodes }: Given): ReturnType<typeof deviceHints> {
  const masks = new DeviceMasks(nodes);
  const count = (ids: Iterable<string>) => masks.count(ids, devices);
  const counts = { available: count(available), reusable: count(reusable), devices: masks.countAll(devices) };
  return deviceHints({ ...counts, amount, nodes });
}

/** `0` or `01`, with `*` if preferred. */
function hintsOf(given: Given): string[] {
  const hints = hintsFor(given);
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
    name: "what is reused and has no node fits anywhere, and counts for nothing",
    given: { devices: devices({ a: [0], b: [] }), amount: 1, available: ["a"], reusable: ["b"], nodes: [0, 1] },
    want: ["0*"],
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
  {
    name: "what is reused on a node that the machine does not have fits nowhere",
    given: { devices: devices({ a: [0], b: [9] }), amount: 1, available: ["a"], reusable: ["b"] },
    want: [],
  },
  {
    name: "what is reused on a node of the machine and on another fits on the former",
    given: { devices: devices({ a: [0], b: [1, 9] }), amount: 1, available: ["a"], reusable: ["b"] },
    want: ["1*", "01"],
  },
];

describe("hints for devices", () => {
  for (const { name, given, want } of cases) {
    test(name, () => assert.deepEqual(hintsOf({ nodes: NODES, ...given }), want));
  }

  test("there are none for devices without NUMA nodes", () => {
    const masks = new DeviceMasks(NODES);
    assert.equal(hasTopology(masks.countAll(devices({ a: [] }))), false);
    assert.equal(hasTopology(masks.countAll(two)), true);
    assert.equal(hasTopology(masks.countAll(devices({ a: [9] }))), true);
  });

  test("of 100,000 devices on eight nodes take no time that matters", () => {
    const many = new Map(
      Array.from({ length: 100_000 }, (_, at) => [`d${at}`, { id: `d${at}`, isHealthy: true, nodes: [at % 8] }]),
    );
    const cpuMs = countCpu();
    const hints = hintsFor({
      devices: many,
      available: [...many.keys()],
      amount: 1,
      nodes: [0, 1, 2, 3, 4, 5, 6, 7],
    });
    assert.equal(hints.length, 255);
    assert.ok(cpuMs() < 1000);
  });

  test("of 100,000 devices, each on other nodes that the machine does not have, take no time that matters", () => {
    const spread = (at: number): number[] =>
      Array.from({ length: 17 }, (_, bit) => 8 + bit).filter((_, bit) => at & (1 << bit));
    const many = new Map(
      Array.from({ length: 100_000 }, (_, at) => [
        `d${at}`,
        { id: `d${at}`, isHealthy: true, nodes: [at % 8, ...spread(at)] },
      ]),
    );
    const cpuMs = countCpu();
    const facts = {
      devices: many,
      available: [...many.keys()],
      amount: 1,
      nodes: [0, 1, 2, 3, 4, 5, 6, 7],
    };
    assert.equal(hintsFor(facts).length, 255);
    assert.ok(cpuMs() < 2000);
  });
});
