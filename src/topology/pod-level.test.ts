import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machine } from "../../test/support/machine.ts";
import { pod } from "../../test/support/pods.ts";
import { TopologyNode } from "../../test/support/topology-node.ts";
import { formatCpuSet } from "../model/cpu-set.ts";
import type { Container, Pod } from "../model/generated/types.ts";

const ON = "--feature-gates=PodLevelResourceManagers=true";
const CPU_FILE = "/root/cpu_manager_state";
const MEMORY_FILE = "/root/memory_manager_state";
const two = machine({ sockets: 2, cores: 4, memoryBytes: 4 * 2 ** 30 });

function flags(policy: string, scope = "pod"): string[] {
  return [
    "--cpu-manager-policy=static",
    "--memory-manager-policy=Static",
    "--reserved-memory=0:memory=512Mi",
    `--topology-manager-policy=${policy}`,
    `--topology-manager-scope=${scope}`,
    ON,
  ];
}

function nodeWith(policy: string, scope?: string): TopologyNode {
  return new TopologyNode(two, flags(policy, scope), { cpus: 1, memoryMi: 512 });
}

function of(cpu: string, memory = "256Mi"): Required<Pick<Container, "resources">> {
  return { resources: { limits: { cpu, memory }, requests: { cpu, memory } } };
}

/** Six CPUs: two for `app`, one for the sidecar, the rest for `log` and `helper`. */
function web(): Pod {
  return pod("web")
    .init("setup")
    .init("proxy", { ...of("1"), restartPolicy: "Always" })
    .container("app", of("2"))
    .container("log")
    .container("helper", { resources: { requests: { cpu: "100m" } } })
    .with({ resources: of("6", "2Gi").resources })
    .build();
}

function cpusOf({ topology }: TopologyNode, container: string, uid = "uid-of-web"): string | undefined {
  const cpus = topology.cpus.state.exclusive(uid, container);
  return cpus && formatCpuSet(cpus);
}

function createdWith({ topology }: TopologyNode, of: Pod, name: string) {
  const container = [...(of.spec.initContainers ?? []), ...of.spec.containers].find((each) => each.name === name);
  assert.ok(container);
  return topology.contributors[0]?.contribute({ pod: of, container }).resources;
}

describe("pod-level resources with the gate PodLevelResourceManagers", () => {
  test("are allocated as a whole on one NUMA node and divided among the containers", async () => {
    const node = nodeWith("single-numa-node");
    assert.equal(await node.admit(web()), undefined);
    const { state } = node.topology.cpus;
    assert.deepEqual(
      [...state.podEntries].map(([uid, cpus]) => [uid, formatCpuSet(cpus)]),
      [["uid-of-web", "1-3,9-11"]],
    );
    assert.equal(formatCpuSet(state.shared), "0,4-8,12-15");
    assert.deepEqual(
      ["setup", "proxy", "app", "log", "helper"].map((name) => [name, cpusOf(node, name)]),
      [
        ["setup", "1-3,9-11"],
        ["proxy", "1"],
        ["app", "2,10"],
        ["log", "3,9,11"],
        ["helper", "3,9,11"],
      ],
    );
    assert.deepEqual(createdWith(node, web(), "setup"), { cpusetCpus: "1-3,9-11", cpusetMems: "0" });
    assert.deepEqual(createdWith(node, web(), "log"), { cpusetCpus: "3,9,11", cpusetMems: "0" });
    const MI = 2 ** 20;
    const bytes = (name: string) =>
      node.topology.memory.state.blocks("uid-of-web", name)?.map((block) => block.bytes / MI);
    assert.deepEqual([bytes("proxy"), bytes("app"), bytes("log")], [[256], [256], [1536]]);
    // The init container has completed when others are created; its memory stays the pod's.
    assert.equal(bytes("setup"), undefined);
    // It runs once more in another sandbox of the pod.
    assert.deepEqual(createdWith(node, web(), "setup"), { cpusetCpus: "1-3,9-11", cpusetMems: "0" });
    assert.match(node.files.get(MEMORY_FILE) ?? "", /"reserved":2147483648/);
    const { holdings } = node.topology.report();
    assert.deepEqual(
      holdings.map(({ container, isShared = false }) => [container, isShared]),
      [
        ["setup", true],
        ["proxy", false],
        ["app", false],
        ["log", true],
        ["helper", true],
      ],
    );
  });

  test("are shared by sidecars that ask for nothing, like by other containers", async () => {
    const node = nodeWith("restricted");
    const sidecar = pod("web")
      .init("proxy", { restartPolicy: "Always" })
      .init("setup", of("1", "1Gi"))
      .container("app", of("2", "1Gi"))
      .with({ resources: of("4", "2Gi").resources })
      .build();
    assert.equal(await node.admit(sidecar), undefined);
    assert.deepEqual([cpusOf(node, "proxy"), cpusOf(node, "app")], ["2,10", "1,9"]);
    const mi = (name: string) =>
      node.topology.memory.state.blocks("uid-of-web", name)?.map(({ bytes }) => bytes / 2 ** 20);
    assert.deepEqual([mi("proxy"), mi("setup"), mi("app")], [[1024], [1024], [1024]]);
  });

  test("leave the CPU quota to the pod and to containers that share, as in Kubernetes", async () => {
    const node = nodeWith("restricted");
    await node.admit(web());
    const { topology } = node;
    const [app, log] = web().spec.containers;
    const [, proxy] = web().spec.initContainers ?? [];
    assert.deepEqual(
      [undefined, proxy, app, log].map((container) => topology.hasExclusiveCpus(web(), container)),
      [false, true, true, false],
    );
    const alone = pod("alone")
      .container("app", of("2"))
      .with({ resources: of("2").resources })
      .build();
    await node.admit(alone);
    assert.equal(topology.hasExclusiveCpus(alone), true);
    assert.equal(topology.hasExclusiveCpus(pod("plain").container("app").build()), false);
  });

  test("are released as a whole, and kept over restarts, also when the gate is turned off", async () => {
    const node = nodeWith("restricted");
    await node.admit(web());
    createdWith(node, web(), "app");
    await node.clock.advance(0);
    const files = [node.files.get(CPU_FILE), node.files.get(MEMORY_FILE)];
    node.start();
    await node.clock.advance(0);
    assert.deepEqual([node.files.get(CPU_FILE), node.files.get(MEMORY_FILE)], files);
    // Admitted once more: nothing is allocated a second time.
    assert.equal(await node.admit(web()), undefined);
    assert.deepEqual([node.files.get(CPU_FILE), node.files.get(MEMORY_FILE)], files);
    node.start(flags("restricted").filter((flag) => flag !== ON));
    await node.clock.advance(0);
    assert.deepEqual([node.files.get(CPU_FILE), node.files.get(MEMORY_FILE)], files);
    assert.equal(cpusOf(node, "log"), "3,9,11");
    assert.equal(node.topology.hasExclusiveCpus(web(), web().spec.containers[1]), false);
    node.remove("uid-of-web");
    await node.clock.advance(0);
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0-15");
    assert.match(node.files.get(MEMORY_FILE) ?? "", /"0":\{"numberOfAssignments":0,.*"reserved":0,"free":3758096384/);
    assert.doesNotMatch(node.files.get(CPU_FILE) ?? "", /podEntries/);
    node.start(flags("restricted").filter((flag) => flag !== ON));
  });

  test("are the pod's also where none of its containers has them, and over restarts", async () => {
    const node = nodeWith("restricted");
    const spare = pod("spare")
      .container("app", of("2"))
      .with({ resources: of("4", "2Gi").resources })
      .build();
    assert.equal(await node.admit(spare), undefined);
    assert.equal(formatCpuSet(node.topology.cpus.state.allExclusive()), "1-2,9-10");
    node.start();
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0,3-8,11-15");
    assert.equal(await node.admit(pod("other").container("app", of("2")).build()), undefined);
    assert.equal(cpusOf(node, "app", "uid-of-other"), "3,11");
    node.remove("uid-of-spare");
    node.remove("uid-of-other");
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0-15");
  });

  test("are rejected if containers that share would have nothing to share", async () => {
    const greedy = (name: string) =>
      pod(name)
        .container("app", of("2"))
        .container("log")
        .with({ resources: of("2").resources })
        .build();
    const message =
      "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers";
    const easy = nodeWith("best-effort");
    assert.deepEqual(await easy.admit(greedy("a")), { reason: "EmptyPodSharedPoolError", message });
    const strict = nodeWith("restricted");
    const rejection = await strict.admit(greedy("a"));
    assert.equal(rejection?.reason, "TopologyAffinityError");
    assert.match(
      rejection.message,
      /^Pod Scope pod with pod-level resources failed admission under pod-scope topology manager: pod rejected, sum of/,
    );
    const hungry = pod("memory")
      .container("app", of("1", "1Gi"))
      .container("log")
      .with({ resources: of("2", "1Gi").resources })
      .build();
    assert.match((await easy.admit(hungry))?.message ?? "", /memory requests equals .* leaving no memory for shared/);
    const early = pod("early")
      .init("proxy", { ...of("2"), restartPolicy: "Always" })
      .init("setup")
      .container("app", of("1"))
      .with({ resources: of("2", "2Gi").resources })
      .build();
    assert.match((await easy.admit(early))?.message ?? "", /has shared init containers but no cpus available for them/);
    const beside = pod("beside")
      .init("proxy", { restartPolicy: "Always" })
      .container("app", of("2"))
      .with({ resources: of("2", "2Gi").resources })
      .build();
    assert.match((await easy.admit(beside))?.message ?? "", /leaving no cpus for shared containers/);
    assert.equal(formatCpuSet(easy.topology.cpus.state.shared), "0-15");
    assert.match(easy.files.get(MEMORY_FILE) ?? "", /"numberOfAssignments":0/);
  });

  test("with container scope each container that is Guaranteed gets its own, and the others share the node", async () => {
    for (const policy of ["none", "restricted"]) {
      const node = nodeWith(policy, "container");
      assert.equal(await node.admit(web()), undefined, policy);
      assert.deepEqual([...node.topology.cpus.state.podEntries], []);
      assert.deepEqual([cpusOf(node, "app"), cpusOf(node, "log")], ["1,9", undefined]);
      assert.deepEqual(createdWith(node, web(), "log"), { cpusetCpus: "0,2-7,10-15" });
      const [app, log] = web().spec.containers;
      const { topology } = node;
      assert.deepEqual(
        [undefined, app, log].map((container) => topology.hasExclusiveCpus(web(), container)),
        [false, true, false],
        "the quota of the pod stays: some of its containers share the node",
      );
    }
    const node = nodeWith("single-numa-node", "container");
    const large = pod("large")
      .container("app", of("9"))
      .with({ resources: of("9").resources })
      .build();
    const rejection = await node.admit(large);
    assert.match(
      rejection?.message ?? "",
      /^Pod Scope pod with pod-level resources failed admission with a container-level topology manager: NUMA node 0: cpu/,
    );
  });

  test("stay what containers have of an agent with container scope", async () => {
    const node = nodeWith("best-effort", "container");
    await node.admit(web());
    const held = () => {
      const { cpus, memory } = node.topology;
      const free = [...memory.state.nodes.values()].map(({ tables }) => tables.get("memory")?.free);
      return [
        formatCpuSet(cpus.state.shared),
        cpusOf(node, "app"),
        new Map(memory.state.entries.get("uid-of-web")),
        free,
      ];
    };
    const before = held();
    node.start(flags("best-effort", "pod"));
    assert.equal(await node.admit(web()), undefined);
    assert.deepEqual(held(), before);
  });

  test("are counted by where they come from", async () => {
    const node = nodeWith("best-effort");
    await node.admit(web());
    await node.admit(pod("plain").container("app", of("2")).build());
    await node.admit(
      pod("large")
        .container("app")
        .with({ resources: of("15").resources })
        .build(),
    );
    const { body } = await node.metrics.expose();
    for (const line of [
      'resource_manager_allocations_total{resource_name="cpu",source="pod"} 5',
      'resource_manager_allocations_total{resource_name="cpu",source="node"} 1',
      'resource_manager_allocation_errors_total{resource_name="cpu",source="pod"} 1',
      'resource_manager_container_assignments{resource_name="cpu",assignment_type="pod_exclusive"} 2',
      'resource_manager_container_assignments{resource_name="memory",assignment_type="pod_shared"} 3',
      'resource_manager_container_assignments{resource_name="memory",assignment_type="node_exclusive"} 1',
      "kubelet_cpu_manager_exclusive_cpu_allocation_count 8",
    ]) {
      assert.ok(body.split("\n").includes(line), line);
    }
    const off = new TopologyNode(two, flags("none").slice(0, -1), { cpus: 1, memoryMi: 512 });
    assert.doesNotMatch((await off.metrics.expose()).body, /resource_manager/);
  });

  test("cannot be resized in place", () => {
    const { topology } = nodeWith("restricted");
    const larger = { ...web(), spec: { ...web().spec, resources: of("8", "2Gi").resources } };
    const why = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    assert.deepEqual([topology.resizeProblem(larger, web()), topology.resizeProblem(web(), web())], [why, undefined]);
    const hungry = { ...web(), spec: { ...web().spec, resources: of("6", "3Gi").resources } };
    assert.match(topology.resizeProblem(hungry, web()) ?? "", /alongside Memory Manager policy "Static"/);
  });

  test("that do not fit leave nothing behind", async () => {
    const node = nodeWith("best-effort");
    const rejection = await node.admit(
      pod("large")
        .container("app")
        .with({ resources: of("2", "8Gi").resources })
        .build(),
    );
    assert.equal(rejection?.reason, "UnexpectedAdmissionError");
    assert.match(
      rejection.message,
      /failed to find NUMA nodes to extend the current topology hint.*: NUMA node 0: memory short by \d+/,
    );
    await node.clock.advance(0);
    assert.deepEqual([...node.topology.cpus.state.holders()], []);
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0-15");
  });

  test("are left alone without the gate", async () => {
    const node = new TopologyNode(two, flags("restricted").slice(0, -1), { cpus: 1, memoryMi: 512 });
    assert.equal(await node.admit(web()), undefined);
    assert.deepEqual([...node.topology.cpus.state.holders(), ...node.topology.memory.state.holders()], []);
  });
});
