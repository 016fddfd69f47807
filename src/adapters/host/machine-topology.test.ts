import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type MachineShape, machine, writeSysfs } from "../../../test/support/machine.ts";
import { readMachineTopology } from "./machine-topology.ts";

const MI = 2 ** 20;

describe("the topology of a machine", () => {
  let root = "";
  let count = 0;
  before(() => {
    root = mkdtempSync(join(tmpdir(), "topology-"));
  });
  after(() => rmSync(root, { recursive: true }));
  const fresh = (): string => {
    const at = join(root, String(count++));
    mkdirSync(at);
    return at;
  };

  const shapes: readonly (readonly [string, MachineShape])[] = [
    ["one socket without SMT", { sockets: 1, cores: 4, threads: 1 }],
    ["two sockets with SMT", { sockets: 2, cores: 2, hugePages: { [2 * MI]: 8, [1024 * MI]: 1 } }],
    ["four NUMA nodes on two sockets", { sockets: 2, nodes: 2, cores: 2 }],
    ["eight NUMA nodes with split L3 caches", { sockets: 2, nodes: 4, caches: 2, cores: 1 }],
    ["CPUs that are offline", { sockets: 2, cores: 2, offline: [1, 6] }],
  ];
  for (const [name, shape] of shapes) {
    test(`is read from /sys: ${name}`, () => {
      const sys = fresh();
      const want = machine(shape);
      writeSysfs(sys, want);
      assert.deepEqual(readMachineTopology({ sys, meminfo: "/none" }), want);
    });
  }

  test("is one node with all CPUs and all memory where the kernel has no NUMA", () => {
    const sys = fresh();
    writeSysfs(sys, { ...machine({ sockets: 1, cores: 1 }), nodes: [] });
    const pool = join(sys, "kernel/mm/hugepages/hugepages-2048kB");
    mkdirSync(pool, { recursive: true });
    writeFileSync(join(pool, "nr_hugepages"), "3\n");
    const meminfo = join(sys, "meminfo");
    writeFileSync(meminfo, "MemTotal:       2048 kB\n");
    const { cpus, nodes } = readMachineTopology({ sys, meminfo });
    assert.deepEqual(
      cpus.map(({ numa }) => numa),
      [0, 0],
    );
    const hugePages = [{ pageBytes: 2 * MI, pages: 3 }];
    assert.deepEqual(nodes, [{ id: 0, memoryBytes: 2 * MI, hugePages, distances: [] }]);
  });

  test("of this machine has every CPU once, and a node for each", () => {
    const { cpus, nodes } = readMachineTopology();
    assert.ok(cpus.length > 0);
    assert.equal(new Set(cpus.map(({ cpu }) => cpu)).size, cpus.length);
    for (const { numa } of cpus) assert.ok(nodes.some(({ id }) => id === numa));
  });
});
