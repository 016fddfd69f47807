import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { TopologyNode } from "../../test/support/topology-node.ts";
import { formatCpuSet } from "../model/cpu-set.ts";
import type { Pod } from "../model/generated/types.ts";
import type { MachineTopology } from "../model/machine-topology.ts";
import { type Hints, nodesOf, numaMask, subsetsOf, TooManyNodesError, type TopologyHint } from "../model/topology.ts";
import { mergeHints } from "./merge-hints.ts";

const GI = 2 ** 30;

/** A machine of so many NUMA nodes, of which the first have 8 CPUs each, and 16 GiB of memory. */
function machineOf(nodes: number, { used }: { used: number }): MachineTopology {
  return {
    cpus: Array.from({ length: used * 8 }, (_, cpu) => {
      const numa = Math.floor(cpu / 8);
      return { cpu, core: cpu, socket: numa, numa, uncore: numa };
    }),
    nodes: Array.from({ length: nodes }, (_, id) => ({
      id,
      memoryBytes: id < used ? 16 * GI : 0,
      hugePages: [],
      distances: Array.from({ length: nodes }, (__, other) => (other === id ? 10 : 20)),
    })),
    offline: [],
  };
}

function nodeOf(machine: MachineTopology, ...policy: readonly string[]): TopologyNode {
  const flags = ["--cpu-manager-policy=static", "--memory-manager-policy=Static", "--reserved-memory=0:memory=1Gi"];
  return new TopologyNode(machine, [...flags, ...policy], { cpus: 1, memoryMi: 1024 });
}

function asking(name: string, cpu: number, memory: string): Pod {
  const amounts = { cpu: String(cpu), memory };
  return pod(name)
    .container("app", { resources: { limits: amounts, requests: amounts } })
    .build();
}

/** CPUs and NUMA nodes of memory that the pod has. */
function heldBy({ topology }: TopologyNode, name: string): readonly unknown[] {
  const uid = `uid-of-${name}`;
  const blocks = topology.memory.state.blocks(uid, "app") ?? [];
  return [formatCpuSet(topology.cpus.state.exclusive(uid, "app") ?? new Set()), blocks.flatMap(({ nodes }) => nodes)];
}

const MANY = "--topology-manager-policy-options=max-allowable-numa-nodes=64";

describe("on a machine with 36 NUMA nodes, of which 2 have CPUs and memory", () => {
  const machine = machineOf(36, { used: 2 });

  test("memory is allocated without a topology policy", async () => {
    const node = nodeOf(machine);
    assert.equal(await node.admit(asking("web", 1, "12Gi")), undefined);
    assert.equal(await node.admit(asking("next", 1, "12Gi")), undefined);
    assert.deepEqual(
      [heldBy(node, "web"), heldBy(node, "next")],
      [
        ["1", [0]],
        ["2", [1]],
      ],
    );
    const rejection = await node.admit(asking("large", 1, "16Gi"));
    assert.match(rejection?.message ?? "", /no NUMA nodes with enough memory is available/);
    node.remove("uid-of-web");
    node.remove("uid-of-next");
    assert.equal(await node.admit(asking("large", 1, "20Gi")), undefined);
    assert.deepEqual(heldBy(node, "large"), ["1", [0, 1]]);
  });

  test("CPUs and memory are aligned with a topology policy", async () => {
    const node = nodeOf(machine, "--topology-manager-policy=single-numa-node", MANY);
    assert.equal(await node.admit(asking("web", 8, "2Gi")), undefined);
    assert.deepEqual(heldBy(node, "web"), ["8-15", [1]]);
    const rejection = await node.admit(asking("next", 8, "2Gi"));
    assert.match(rejection?.message ?? "", /: NUMA node 0: cpu short by 1 \(requested 8, free 7\); NUMA node 1: cpu/);
  });

  test("a topology policy needs the option for so many", () => {
    assert.throws(() => nodeOf(machine, "--topology-manager-policy=restricted"), /with more than 8 NUMA Nodes/);
    const more = machineOf(65, { used: 2 });
    assert.throws(
      () => nodeOf(more, "--topology-manager-policy=restricted", MANY.replace("64", "99")),
      /unsupported on machines with more than 64 NUMA Nodes$/,
    );
  });
});

describe("on a machine with 40 NUMA nodes, all with CPUs and memory", () => {
  const machine = machineOf(40, { used: 40 });

  test("memory of few nodes is allocated without a topology policy", async () => {
    const node = nodeOf(machine);
    assert.equal(await node.admit(asking("web", 1, "40Gi")), undefined);
    assert.deepEqual(heldBy(node, "web")[1], [0, 1, 2]);
    const rejection = await node.admit(asking("large", 1, "80Gi"));
    assert.match(
      rejection?.message ?? "",
      /\[memorymanager\] cannot compare sets of more than 3 of 40 NUMA nodes, .* set memoryManagerPolicy to None/,
    );
    const larger = await node.admit(asking("larger", 1, "800Gi"));
    assert.match(larger?.message ?? "", /no NUMA nodes with enough memory is available/);
    assert.equal(await node.admit(asking("next", 1, "1Gi")), undefined);
  });

  test("a topology policy rejects pods that ask for CPUs, and says what to set", async () => {
    const node = nodeOf(machine, "--topology-manager-policy=best-effort", MANY);
    const why = "cannot compare all sets of 40 NUMA nodes, at most 16 are supported: set topologyManagerPolicy to none";
    const message = `Resources cannot be allocated with Topology locality: ${why}`;
    assert.deepEqual(await node.admit(asking("web", 1, "1Gi")), { reason: "TopologyAffinityError", message });
    assert.equal(await node.admit(pod("shared").container("app").build()), undefined);
  });
});

describe("hints on a machine with 64 NUMA nodes", () => {
  const nodes = Array.from({ length: 64 }, (_, at) => at);
  const rules = { policy: "best-effort", nodes } as const;
  const hint = (isPreferred: boolean, ...of: readonly number[]): TopologyHint => ({ numa: numaMask(of), isPreferred });
  const hintsOf = (...list: readonly TopologyHint[]): Hints => new Map([["resource", list]]);

  test("are merged by the nodes that they name", () => {
    const cpus = hintsOf(hint(true, 0), hint(true, 63), hint(false, 0, 63));
    const card = hintsOf(hint(true, 63), hint(false, 40, 63));
    assert.deepEqual(mergeHints([cpus, card], rules), { hint: hint(true, 63), isAdmitted: true });
    assert.deepEqual(mergeHints([hintsOf(hint(true, 0)), card], rules).hint, hint(false, ...nodes));
    assert.deepEqual(mergeHints([new Map(), cpus], { ...rules, policy: "single-numa-node" }).hint, hint(true, 0));
    assert.deepEqual(mergeHints([new Map()], rules).hint, hint(true, ...nodes));
    assert.deepEqual(mergeHints([new Map([["resource", []]])], rules).hint, hint(false, ...nodes));
  });

  test("prefer closer nodes by their numbers", () => {
    const distances = nodes.map((a) => nodes.map((b) => (a === b ? 10 : Math.abs(a - b) === 20 ? 12 : 40)));
    const list = hintsOf(hint(true, 1, 2), hint(true, 30, 50), hint(true, 60, 61));
    assert.deepEqual(mergeHints([list], { ...rules, distances }).hint, hint(true, 30, 50));
  });

  test("that name too many of them are an error", () => {
    const many = hintsOf(...nodes.slice(0, 31).map((node) => hint(true, node)));
    const why = "cannot merge hints that name 31 NUMA nodes, there are too many";
    assert.throws(() => mergeHints([many], rules), new TooManyNodesError(why));
    const sets = (of: readonly number[]): Hints =>
      hintsOf(...subsetsOf(of).map(({ mask }) => ({ numa: mask, isPreferred: false })));
    const [low, high] = [sets(nodes.slice(0, 12)), sets(nodes.slice(8, 20))];
    assert.throws(() => mergeHints([low, high], rules), TooManyNodesError);
  });
});

test("hints for all sets of 14 NUMA nodes do not block the agent", () => {
  const nodes = Array.from({ length: 14 }, (_, at) => at);
  const hintsOn = (preferred: number): Hints => {
    const list = subsetsOf(nodes).map(({ mask }) => ({ numa: mask, isPreferred: mask === numaMask([preferred]) }));
    return new Map([["resource", list]]);
  };
  const all = Array.from({ length: 10 }, (_, at) => hintsOn(at));
  const began = performance.now();
  const { hint } = mergeHints(all, { policy: "best-effort", nodes });
  // 0.3 s; it was 10 s.
  assert.ok(performance.now() - began < 3000);
  assert.deepEqual([nodesOf(hint.numa ?? 0n), hint.isPreferred], [[0], false]);
});
