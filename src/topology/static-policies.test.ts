import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { machine } from "../../test/support/machine.ts";
import { pod } from "../../test/support/pods.ts";
import { TopologyNode } from "../../test/support/topology-node.ts";
import { formatCpuSet, intersection, parseCpuSet } from "../model/cpu-set.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { CpuState } from "./cpu/cpu-state.ts";

const STATIC = "--cpu-manager-policy=static";
const CPU_FILE = "/root/cpu_manager_state";
const MEMORY_FILE = "/root/memory_manager_state";

function of(cpu: string, more: Record<string, string> = {}): Pick<Container, "resources"> {
  const limits = { cpu, memory: "1Gi", ...more };
  return { resources: { limits, requests: limits } };
}

function whole(name: string, cpus: number): Pod {
  return pod(name)
    .container("app", of(String(cpus)))
    .build();
}

function cpusOf({ topology }: TopologyNode, name: string, container = "app"): string | undefined {
  const cpus = topology.cpus.state.exclusive(`uid-of-${name}`, container);
  return cpus && formatCpuSet(cpus);
}

describe("the static CPU policy", () => {
  const quad = machine({ sockets: 1, cores: 4 });

  test("gives whole CPUs to Guaranteed pods, and the rest to all others", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    assert.equal(await node.admit(whole("web", 2)), undefined);
    assert.equal(cpusOf(node, "web"), "1,5");
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0,2-4,6-7");
    const [contributor] = node.topology.contributors;
    const cpuset = (of: Pod) => contributor?.contribute({ pod: of, container: of.spec.containers[0] ?? { name: "" } });
    assert.deepEqual(cpuset(whole("web", 2))?.resources, { cpusetCpus: "1,5" });
    assert.deepEqual(cpuset(pod("other").container("app").build())?.resources, { cpusetCpus: "0,2-4,6-7" });
  });

  test("leaves pods alone that are not Guaranteed, ask for parts of CPUs, or have pod-level resources", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    const burstable = pod("burstable")
      .container("app", { resources: { requests: { cpu: "2" } } })
      .build();
    const part = pod("part").container("app", of("1500m")).build();
    const level = pod("level")
      .container("app", of("2"))
      .with({ resources: of("2").resources })
      .build();
    for (const each of [burstable, part, level]) assert.equal(await node.admit(each), undefined);
    assert.deepEqual([...node.topology.cpus.state.entries], []);
  });

  test("hands CPUs of containers that initialize a pod on, but not those of sidecars", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    const sidecar = { ...of("1"), restartPolicy: "Always" };
    const web = pod("web").init("setup", of("4")).init("proxy", sidecar).container("app", of("3")).build();
    assert.equal(await node.admit(web), undefined);
    const [setup = "", proxy = "", app = ""] = ["setup", "proxy", "app"].map((name) => cpusOf(node, "web", name));
    assert.deepEqual([setup, proxy, app], ["1-2,5-6", "4", "1-2,5"]);
    assert.equal(intersection(parseCpuSet(proxy), parseCpuSet(app)).size, 0);
    node.remove("uid-of-web");
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0-7");
  });

  test("thousands of containers that initialize a pod do not block the agent", async () => {
    const flags = [STATIC, "--memory-manager-policy=Static", "--reserved-memory=0:memory=300Mi"];
    const node = new TopologyNode(quad, flags, { cpus: 1, memoryMi: 300 });
    const many = pod("web").container("app", of("1"));
    for (let at = 0; at < 1500; at++) many.init(`init${at}`, of("1"));
    const web = many.build();
    const cpuMs = countCpu();
    assert.equal(await node.admit(web), undefined);
    // 0.4 s; it was 20 s.
    assert.ok(cpuMs() < 4000);
    assert.equal(cpusOf(node, "web"), cpusOf(node, "web", "init0"));
  });

  test("each of them is looked at as often as there are others, not more often", async () => {
    const flags = [STATIC, "--memory-manager-policy=Static", "--reserved-memory=0:memory=300Mi"];
    const node = new TopologyNode(quad, flags, { cpus: 1, memoryMi: 300 });
    const many = pod("web").init("proxy", { ...of("1"), restartPolicy: "Always" });
    for (let at = 0; at < 200; at++) many.init(`init${at}`, of("2"));
    for (let at = 0; at < 200; at++) many.container(`app${at}`, of(at === 0 ? "1" : "500m", { memory: "10Mi" }));
    const { metadata, spec } = many.build();
    const reads = { lists: 0, blocks: 0 };
    const watched = new Proxy(spec, {
      get: (target, key, receiver) => {
        if (key === "initContainers") reads.lists++;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
    const { state } = node.topology.memory;
    const blocks = state.blocks.bind(state);
    state.blocks = (uid, name) => {
      reads.blocks++;
      return blocks(uid, name);
    };
    assert.equal(await node.admit({ metadata, spec: watched }), undefined);
    // It was 1006 and 60,301.
    assert.ok(reads.lists < 10, `${reads.lists} times in their list`);
    assert.ok(reads.blocks < 1000, `${reads.blocks} times by their memory`);
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0,2-3,6-7");
    assert.deepEqual([cpusOf(node, "web", "proxy"), cpusOf(node, "web", "app0")], ["4", "1"]);
  });

  test("more containers than a call has arguments can be released", () => {
    const state = new CpuState(new Set([0]));
    for (let at = 0; at < 150_000; at++) state.assign(`pod${at % 30}`, `init${at}`, new Set([1 + (at % 30)]));
    assert.equal(state.allExclusive().size, 30);
  });

  test("rejects what it cannot give, and keeps nothing of it", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 2 });
    const rejection = await node.admit(whole("web", 7));
    assert.equal(rejection?.reason, "UnexpectedAdmissionError");
    assert.match(rejection?.message ?? "", /not enough cpus available to satisfy request: requested=7, available=6/);
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0-7");
  });

  test("with full-pcpus-only rejects parts of cores as SMTAlignmentError", async () => {
    const node = new TopologyNode(quad, [STATIC, "--cpu-manager-policy-options=full-pcpus-only=true"], { cpus: 1 });
    assert.deepEqual(await node.admit(whole("odd", 3)), {
      reason: "SMTAlignmentError",
      message: "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
    });
    const message =
      "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2";
    assert.deepEqual(await node.admit(whole("large", 8)), { reason: "SMTAlignmentError", message });
    assert.equal(await node.admit(whole("even", 6)), undefined);
    const { body } = await node.metrics.expose();
    assert.match(body, /failure_count\{scope="container",boundary="physical_cpu"\} 2\n/);
    assert.match(body, /kubelet_cpu_manager_exclusive_cpu_allocation_count 6\n/);
    assert.match(body, /kubelet_cpu_manager_pinning_errors_total 2\n/);
  });

  test("with strict-cpu-reservation keeps reserved CPUs from all pods", async () => {
    const flags = [STATIC, "--cpu-manager-policy-options=strict-cpu-reservation=true", "--reserved-cpus=0,4"];
    const node = new TopologyNode(quad, flags, { cpus: 2 });
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "1-3,5-7");
    await node.admit(whole("web", 2));
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "2-3,6-7");
  });

  test("starts again while containers have all CPUs that are not strictly reserved", async () => {
    const flags = [STATIC, "--cpu-manager-policy-options=strict-cpu-reservation=true", "--reserved-cpus=0,4"];
    const node = new TopologyNode(quad, flags, { cpus: 2 });
    await node.admit(whole("web", 6));
    node.start();
    assert.equal(cpusOf(node, "web"), "1-3,5-7");
    node.remove("uid-of-web");
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "1-3,5-7");
  });

  test("admits a pod again that has its CPUs, also on a full node with full-pcpus-only", async () => {
    const node = new TopologyNode(quad, [STATIC, "--cpu-manager-policy-options=full-pcpus-only=true"], { cpus: 1 });
    await node.admit(whole("web", 6));
    node.start();
    assert.equal(await node.admit(whole("web", 6)), undefined);
    assert.equal(cpusOf(node, "web"), "1-3,5-7");
  });

  for (const [cpus, scope] of [
    [1, "container"],
    [3, "container"],
    [1, "pod"],
    [3, "pod"],
  ] as const) {
    test(`cannot align a pod that has 2 CPUs and asks for ${cpus}: scope ${scope}`, async () => {
      const flags = [STATIC, "--topology-manager-policy=restricted", `--topology-manager-scope=${scope}`];
      const node = new TopologyNode(quad, flags, { cpus: 1 });
      await node.admit(whole("web", 2));
      node.start();
      assert.equal((await node.admit(whole("web", cpus)))?.reason, "TopologyAffinityError");
    });
  }

  test("shows the alignments that it counts from the start", async () => {
    const { body } = await new TopologyNode(quad, [STATIC], { cpus: 1 }).metrics.expose();
    const count = "kubelet_container_aligned_compute_resources_count";
    assert.match(body, new RegExp(`${count}{scope="container",boundary="physical_cpu"} 0\n`));
    assert.match(body, new RegExp(`${count}{scope="container",boundary="uncore_cache"} 0\n`));
    assert.match(body, /failure_count\{scope="container",boundary="physical_cpu"\} 0\n/);
    assert.match(body, /kubelet_cpu_manager_allocation_per_numa\{numa_node="0"\} 0\n/);
    assert.match(body, /kubelet_topology_manager_admission_duration_ms_count 0\n/);
    assert.doesNotMatch(body, /boundary="numa_node"/);
    const single = new TopologyNode(quad, [STATIC, "--topology-manager-policy=single-numa-node"], { cpus: 1 });
    for (const scope of ["container", "pod"]) {
      assert.match(
        (await single.metrics.expose()).body,
        new RegExp(`${count}{scope="${scope}",boundary="numa_node"} 0\n`),
      );
    }
  });

  test("has no preference for containers that share", async () => {
    const node = new TopologyNode(machine({ sockets: 2, cores: 2 }), [STATIC], { cpus: 1 });
    const part = pod("part").container("app", of("1500m")).build();
    const [app = { name: "" }] = part.spec.containers;
    const [provider] = node.topology.cpus.providers;
    assert.deepEqual([provider?.hints(part, app).size, provider?.podHints(part).size], [0, 0]);
  });

  test("keeps the CPU quota without its gate", async () => {
    const flags = [STATIC, "--feature-gates=DisableCPUQuotaWithExclusiveCPUs=false"];
    const node = new TopologyNode(quad, flags, { cpus: 1 });
    await node.admit(whole("web", 2));
    assert.equal(node.topology.hasExclusiveCpus(whole("web", 2)), false);
  });

  test("counts what is pinned, what shares and what is near together", async () => {
    const node = new TopologyNode(machine({ sockets: 1, caches: 3, cores: 2 }), [STATIC], { cpus: 1 });
    for (const [name, cpus] of [
      ["near", 2],
      ["far", 6],
    ] as const) {
      assert.equal(await node.admit(whole(name, cpus)), undefined);
    }
    const { body } = await node.metrics.expose();
    assert.match(body, /^kubelet_cpu_manager_pinning_requests_total 2$/m);
    assert.match(body, /^kubelet_cpu_manager_pinning_errors_total 0$/m);
    // Of twelve CPUs, one of them reserved.
    assert.match(body, /^kubelet_cpu_manager_shared_pool_size_millicores 3000$/m);
    assert.match(body, /resources_count\{scope="container",boundary="uncore_cache"\} 1$/m);
    assert.match(body, /resources_count\{scope="container",boundary="physical_cpu"\} 0$/m);
  });

  test("needs a reservation, and options that fit", () => {
    assert.throws(
      () => new TopologyNode(quad, [STATIC]),
      /^ConfigurationError: .*static policy requires systemreserved.cpu/,
    );
    const options = (text: string) => [STATIC, `--cpu-manager-policy-options=${text}`];
    const both = [...options("full-pcpus-only=true"), ...options("distribute-cpus-across-cores=true")];
    assert.throws(
      () => new TopologyNode(quad, both, { cpus: 1 }),
      /^ConfigurationError: .*can not be used at the same time/,
    );
    const socket = [...options("align-by-socket=true"), "--topology-manager-policy=single-numa-node"];
    assert.throws(
      () => new TopologyNode(quad, socket, { cpus: 1 }),
      /^ConfigurationError: .*incompatible with CPUManager align-by-socket/,
    );
    const none = ["--cpu-manager-policy-options=full-pcpus-only=true"];
    assert.throws(
      () => new TopologyNode(quad, none),
      /^ConfigurationError: .*None policy: received unsupported options: full-pcpus-only/,
    );
  });

  test("continues after a restart of the agent, and updates CPU sets of running containers", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    await node.admit(whole("web", 2));
    node.start();
    assert.equal(cpusOf(node, "web"), "1,5");
    const [container] = [{ id: "id-1", name: "app", state: "running" }];
    // reason: nothing else of it is read
    const seen = (name: string, id: string) =>
      ({ uid: `uid-of-${name}`, name, containers: [{ ...container, id }] }) as never;
    node.observed.push(seen("web", "id-1"), seen("shared", "id-2"), seen("foreign", "id-3"), seen("forced", "id-4"));
    node.workers = ["uid-of-forced"];
    for (const name of ["web", "shared"]) node.desired.set(`uid-of-${name}`, whole(name, 2));
    const stop = new AbortController();
    const running = node.topology.loops[0]?.run(stop.signal);
    await node.clock.advance(0);
    const removed = "a pod that was deleted by force leaves the CPUs of others, too";
    assert.deepEqual(node.updates, ["id-1 1,5", "id-2 0,2-4,6-7", "id-4 0,2-4,6-7"], removed);
    node.desired.set("uid-of-new", whole("new", 1));
    await node.admit(whole("new", 1));
    await node.clock.advance(0);
    assert.deepEqual(node.updates.slice(3), ["id-2 0,2-3,6-7", "id-4 0,2-3,6-7"]);
    // Neither wanted nor running any more.
    node.desired.delete("uid-of-new");
    await node.clock.advance(10_000);
    assert.equal(cpusOf(node, "new"), undefined);
    assert.deepEqual(node.updates.slice(5), ["id-2 0,2-4,6-7", "id-4 0,2-4,6-7"]);
    stop.abort();
    await running;
  });

  for (const { name, facts, left } of [
    { name: "while a manifest cannot be read", facts: { isComplete: false }, left: "1,5" },
    { name: "before the runtime was listed", facts: { listedAt: undefined }, left: "1,5" },
    { name: "while a worker stops it that has not read it yet", facts: { workers: ["uid-of-web"] }, left: "1,5" },
    { name: "unless all is known", facts: {}, left: undefined },
    { name: "while the runtime has it", facts: { observed: [{ uid: "uid-of-web", containers: [] }] }, left: "1,5" },
  ]) {
    test(`a pod that is neither wanted nor running keeps its CPUs ${name}`, async () => {
      const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
      await node.admit(whole("web", 2));
      Object.assign(node, facts);
      node.start();
      const stop = new AbortController();
      const running = node.topology.loops[0]?.run(stop.signal);
      await node.clock.advance(10_000);
      assert.equal(cpusOf(node, "web"), left);
      stop.abort();
      await running;
    });
  }

  test("gives CPUs that a pod had to all others at once", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    await node.admit(whole("web", 2));
    for (const name of ["web", "other"]) node.desired.set(`uid-of-${name}`, whole(name, 2));
    const containers = [{ id: "id-1", name: "app", state: "running" }];
    node.observed.push({ uid: "uid-of-other", name: "other", containers } as never); // reason: nothing else of it is read
    const stop = new AbortController();
    const running = node.topology.loops[0]?.run(stop.signal);
    await node.clock.advance(0);
    node.remove("uid-of-web");
    await node.clock.advance(0);
    assert.deepEqual(node.updates, ["id-1 0,2-4,6-7", "id-1 0-7"]);
    stop.abort();
    await running;
  });

  test("does not update the CPU sets of containers that have exited", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    node.desired.set("uid-of-web", whole("web", 2));
    const containers = ["exited", "running"].map((state) => ({ id: `id-${state}`, name: state, state }));
    node.observed.push({ uid: "uid-of-web", name: "web", containers } as never); // reason: nothing else of it is read
    const stop = new AbortController();
    const running = node.topology.loops[0]?.run(stop.signal);
    await node.clock.advance(0);
    assert.deepEqual(node.updates, ["id-running 0-7"]);
    stop.abort();
    await running;
  });

  test("does not start on a state of another policy, of other CPUs, or one that is damaged", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    await node.admit(whole("web", 2));
    assert.throws(
      () => node.start([]),
      /^ConfigurationError: .*configured policy "none" differs from state checkpoint policy "static"/,
    );
    const text = node.files.get(CPU_FILE) ?? "";
    node.files.set(CPU_FILE, text.replace("1,5", "1,6"));
    assert.throws(
      () => node.start(),
      /^ConfigurationError: .*checkpoint is corrupted, please drain this node and delete .*"\/root\/cpu_manager_state"/,
    );
    node.files.set(CPU_FILE, "{");
    assert.throws(() => node.start(), /^ConfigurationError: .*could not restore state from checkpoint/);
    node.files.set(CPU_FILE, text.replace(/,"checksum":\d+/, ',"checksum":0').replace("0,2-4,6-7", "0,2-4,6-9"));
    assert.throws(
      () => node.start(),
      /^ConfigurationError: .*current set of available CPUs "0-7" doesn't match with CPUs in state "0-9"/,
    );
    node.files.set(CPU_FILE, text);
    node.start();
  });

  test("does not start if CPUs of containers are reserved now, nor if shared ones are strictly reserved", async () => {
    const node = new TopologyNode(quad, [STATIC, "--reserved-cpus=0,4"], { cpus: 2 });
    const other = [STATIC, "--reserved-cpus=1,5"];
    const strict = [...other, "--cpu-manager-policy-options=strict-cpu-reservation=true"];
    await node.clock.advance(0);
    assert.throws(
      () => node.start(strict),
      /some of strictly reserved cpus: "1,5" are present in defaultCpuSet: "0-7"/,
    );
    await node.admit(whole("web", 2));
    assert.throws(
      () => node.start(other),
      /^ConfigurationError: .*not all reserved cpus: "1,5" are present in defaultCpuSet: "0,2-4,6-7"/,
    );
  });

  test("that cannot be persisted rejects the pod", async () => {
    const node = new TopologyNode(quad, [STATIC], { cpus: 1 });
    node.fault = new Error("no space left on device");
    const rejection = await node.admit(whole("web", 2));
    assert.match(rejection?.message ?? "", /Allocate failed due to no space left on device/);
    assert.equal(formatCpuSet(node.topology.cpus.state.shared), "0-7");
  });

  test("turns the CPU quota off, and makes resizes of Guaranteed pods infeasible", async () => {
    const node = new TopologyNode(quad, [STATIC, "--feature-gates=AllAlpha=false"], { cpus: 1 });
    const web = pod("web").container("app", of("2")).container("log", of("500m")).build();
    await node.admit(web);
    const { topology } = node;
    const [app, log] = web.spec.containers;
    assert.deepEqual(
      [topology.hasExclusiveCpus(web), topology.hasExclusiveCpus(web, app), topology.hasExclusiveCpus(web, log)],
      [true, true, false],
    );
    const larger = pod("web").container("app", of("3")).container("log", of("500m")).build();
    const why = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    assert.deepEqual([topology.resizeProblem(larger, web), topology.resizeProblem(web, web)], [why, undefined]);
  });
});

test("a pod as a whole is resized only with its gate", () => {
  const gate = "InPlacePodLevelResourcesVerticalScaling";
  const whole = (memory: string): Pod =>
    pod("web")
      .container("app", {})
      .with({ resources: { limits: { memory } } })
      .build();
  const problems = ["false", "true"].map((value) =>
    new TopologyNode(machine({ sockets: 1, cores: 4 }), [`--feature-gates=${gate}=${value}`]).topology.resizeProblem(
      whole("2Mi"),
      whole("1Mi"),
    ),
  );
  assert.deepEqual(problems, [`${gate} is disabled`, undefined]);
});

describe("the Static memory policy", () => {
  const flags = ["--memory-manager-policy=Static", "--reserved-memory=0:memory=512Mi"];
  const two = machine({ sockets: 2, cores: 2, memoryBytes: 4 * 2 ** 30, hugePages: { [2 * 2 ** 20]: 256 } });

  test("gives memory and huge pages of one NUMA node, and sets the memory nodes of the container", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    const web = pod("web")
      .container("app", of("1", { memory: "3300Mi", "hugepages-2Mi": "256Mi" }))
      .build();
    assert.equal(await node.admit(web), undefined);
    const [container = { name: "" }] = web.spec.containers;
    const resources = () => node.topology.contributors[0]?.contribute({ pod: web, container }).resources;
    // Node 0 has 4096 - 512 reserved - 512 in huge pages.
    assert.deepEqual(resources(), { cpusetMems: "1" });
    node.start();
    assert.deepEqual(resources(), { cpusetMems: "1" });
    const large = pod("large")
      .container("app", of("1", { memory: "7Gi" }))
      .build();
    assert.match((await node.admit(large))?.message ?? "", /no NUMA nodes with enough memory is available/);
    node.remove("uid-of-web");
    assert.match(node.files.get(MEMORY_FILE) ?? "", /"free":3758096384/);
  });

  test("that cannot be persisted rejects the pod, and all memory is nobody's again", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    const memory = () =>
      JSON.stringify([...node.topology.memory.state.nodes].map(([id, { tables }]) => [id, [...tables]]));
    const idle = memory();
    node.fault = new Error("no space left on device");
    const rejection = await node.admit(pod("web").container("app", of("1")).build());
    assert.match(rejection?.message ?? "", /Allocate failed due to no space left on device/);
    assert.equal(memory(), idle);
    assert.match((await node.metrics.expose()).body, /^kubelet_memory_manager_pinning_errors_total 1$/m);
  });

  test("releases what containers that initialize the pod had once one after them is created, sidecars apart", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    const sidecar = { ...of("1", { memory: "128Mi" }), restartPolicy: "Always" };
    const web = pod("web")
      .init("first", of("1", { memory: "1Gi" }))
      .init("proxy", sidecar)
      .init("second", of("1", { memory: "2Gi" }))
      .container("app", of("1"))
      .container("log", of("1"))
      .build();
    await node.admit(web);
    const holders = () => [...(node.topology.memory.state.entries.get("uid-of-web")?.keys() ?? [])];
    const free = () => node.topology.memory.state.nodes.get(0)?.tables.get("memory")?.free ?? 0;
    const seen: string[] = [];
    for (const each of [...(web.spec.initContainers ?? []), ...web.spec.containers]) {
      node.topology.contributors[0]?.contribute({ pod: web, container: each });
      seen.push(`${each.name}: ${holders().join(" ")}`);
    }
    assert.deepEqual(seen, [
      "first: first proxy second app log",
      "proxy: proxy second app log",
      "second: proxy second app log",
      "app: proxy app log",
      "log: proxy app log",
    ]);
    const left = free();
    await node.clock.advance(0);
    node.start();
    assert.deepEqual([holders().sort(), free()], [["app", "log", "proxy"], left], "on the disk, too");
    assert.deepEqual(node.warnings, []);
    node.remove("uid-of-web");
    assert.equal(free(), (4096 - 512 - 512) * 2 ** 20);
  });

  test("writes its state when a container is created only if something is released", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    const web = pod("web").init("setup", of("1")).container("app", of("1")).build();
    await node.admit(web);
    const [app = { name: "" }] = web.spec.containers;
    const isWritten: boolean[] = [];
    for (let starts = 0; starts < 2; starts++) {
      node.files.delete(MEMORY_FILE);
      node.topology.contributors[0]?.contribute({ pod: web, container: app });
      await node.clock.advance(0);
      isWritten.push(node.files.has(MEMORY_FILE));
    }
    assert.deepEqual(isWritten, [true, false]);
  });

  test("adds up reservations of one NUMA node", async () => {
    const huge = machine({ sockets: 1, cores: 2, memoryBytes: 4 * 2 ** 30, hugePages: { [2 * 2 ** 20]: 256 } });
    const both = [...flags, "--reserved-memory=0:hugepages-2Mi=64Mi"];
    const node = new TopologyNode(huge, both, { memoryMi: 512, hugeMi: 64 });
    const { nodes } = node.topology.memory.state;
    const of = (type: string) => nodes.get(0)?.tables.get(type)?.systemReserved;
    assert.deepEqual([of("memory"), of("hugepages-2Mi")], [512 * 2 ** 20, 64 * 2 ** 20]);
  });

  test("counts the memory of a static pod anew that comes back", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    const web = pod("web")
      .init("setup", of("1", { memory: "2Gi" }))
      .container("app", of("1"))
      .build();
    const free = () => [...node.topology.memory.state.nodes.values()].map(({ tables }) => tables.get("memory")?.free);
    const idle = free();
    await node.admit(web);
    const used = free();
    node.remove("uid-of-web");
    assert.deepEqual(free(), idle);
    await node.admit(web);
    assert.deepEqual(free(), used);
  });

  test("releases the memory of a pod that is neither wanted nor running", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    await node.admit(pod("web").container("app", of("1")).build());
    const { loops, memory } = node.start();
    assert.deepEqual([...memory.state.holders()], ["uid-of-web"]);
    const stop = new AbortController();
    const running = loops[0]?.run(stop.signal);
    await node.clock.advance(10_000);
    assert.deepEqual([...memory.state.holders()], []);
    stop.abort();
    await running;
  });

  test("records nothing for 0 huge pages of a size that the machine lacks", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    const idle = node.files.get(MEMORY_FILE);
    const web = pod("web")
      .container("app", of("1", { "hugepages-1Gi": "0" }))
      .build();
    assert.equal(await node.admit(web), undefined);
    const text = node.files.get(MEMORY_FILE) ?? "";
    assert.doesNotMatch(text, /hugepages-1Gi/);
    // As earlier versions wrote it.
    const block = '{"numaAffinity":[0],"type":"hugepages-1Gi","size":0}';
    const old = text.replace('"app":[', `"app":[${block},`).replace(/"checksum":\d+/, '"checksum":0');
    assert.ok(old.includes(block));
    node.files.set(MEMORY_FILE, old);
    node.start();
    node.remove("uid-of-web");
    await node.clock.advance(0);
    assert.equal(node.files.get(MEMORY_FILE), idle);
  });

  test("needs reservations that are what the node reserves", () => {
    assert.throws(
      () => new TopologyNode(two, flags, { memoryMi: 600 }),
      /the total amount "512Mi" of type "memory" is not equal to the value "600Mi"/,
    );
    const wrong = ["--memory-manager-policy=Static", "--reserved-memory=7:memory=512Mi"];
    assert.throws(
      () => new TopologyNode(two, wrong, { memoryMi: 512 }),
      /references a NUMA node 7 that does not exist/,
    );
  });

  describe("with a group of NUMA nodes", () => {
    const small = machine({ sockets: 2, cores: 2, memoryBytes: 2 * 2 ** 30 });
    const both = [...flags, STATIC, "--topology-manager-policy=best-effort"];
    const wide = pod("wide")
      .container("app", of("1", { memory: "3Gi" }))
      .build();
    const blocksOf = ({ topology }: TopologyNode, name: string) =>
      topology.memory.state.blocks(`uid-of-${name}`, "app")?.flatMap(({ nodes }) => nodes);

    test("uses a node of it never alone, whatever the CPUs prefer", async () => {
      const four = machine({ sockets: 2, nodes: 2, cores: 2, memoryBytes: 2 * 2 ** 30 });
      // Only nodes 0 and 1 have CPUs to give, and only 2 and 3 have memory that is nobody's.
      const node = new TopologyNode(four, [...both, "--reserved-cpus=4-7,12-15"], { memoryMi: 512, cpus: 8 });
      assert.equal(await node.admit(wide), undefined);
      assert.deepEqual(blocksOf(node, "wide"), [0, 1]);
      const narrow = pod("narrow")
        .container("app", of("4", { memory: "128Mi" }))
        .build();
      assert.equal(await node.admit(narrow), undefined);
      assert.deepEqual(blocksOf(node, "narrow"), [0, 1]);
      node.remove("uid-of-wide");
      node.remove("uid-of-narrow");
      const free = [...node.topology.memory.state.nodes.values()].map(({ tables }) => tables.get("memory")?.free);
      assert.deepEqual(
        free,
        [1536, 2048, 2048, 2048].map((mi) => mi * 2 ** 20),
      );
    });

    test("counts anew what a state file of the original lost count of", async () => {
      const node = new TopologyNode(small, both, { memoryMi: 512, cpus: 1 });
      await node.admit(wide);
      const text = node.files.get(MEMORY_FILE) ?? "";
      // Written when a container had memory of node 0 alone, and was removed.
      const reserved = /"reserved":1610612736,"free":0/;
      assert.match(text, reserved);
      const lost = text
        .replace(reserved, '"reserved":1476395008,"free":134217728')
        .replace(/"checksum":\d+/, '"checksum":0');
      node.files.set(MEMORY_FILE, lost);
      node.start();
      await node.clock.advance(0);
      assert.match(node.warnings.join(), /lost count/);
      assert.equal(node.files.get(MEMORY_FILE), text);
      // Containers that have more than there is are no mistake in counting.
      const size = '"size":3221225472';
      assert.ok(text.includes(size));
      node.files.set(MEMORY_FILE, lost.replace(size, '"size":4221225472'));
      assert.throws(
        () => node.start(),
        /^ConfigurationError: .*the expected machine state is different from the real one/,
      );
    });
  });

  test("does not start on a state that does not fit to the machine", async () => {
    const node = new TopologyNode(two, flags, { memoryMi: 512 });
    await node.admit(pod("web").container("app", of("1")).build());
    assert.throws(
      () => node.start([]),
      /^ConfigurationError: .*configured policy "None" differs from state checkpoint policy "Static"/,
    );
    const larger = machine({ sockets: 2, cores: 2, memoryBytes: 8 * 2 ** 30 });
    const other = new TopologyNode(larger, flags, { memoryMi: 512 });
    other.files.set(MEMORY_FILE, node.files.get(MEMORY_FILE) ?? "");
    assert.throws(
      () => other.start(),
      /^ConfigurationError: .*the expected machine state is different from the real one/,
    );
  });
});

test("without the static policies a damaged state file is written anew", async () => {
  const node = new TopologyNode(machine({ sockets: 1, cores: 2 }), []);
  for (const damaged of ["", "{", "null", '{"policyName":"none","checksum":1}']) {
    node.files.set(CPU_FILE, damaged).set(MEMORY_FILE, damaged);
    node.start();
    await node.clock.advance(0);
    assert.match(node.files.get(CPU_FILE) ?? "", /"policyName":"none"/);
    assert.match(node.files.get(MEMORY_FILE) ?? "", /"policyName":"None"/);
    node.start();
  }
});

describe("pods that ran before the policies were static", () => {
  const flags = [STATIC, "--memory-manager-policy=Static", "--reserved-memory=0:memory=300Mi"];
  const running = [
    whole("web", 2),
    pod("level")
      .container("app")
      .with({ resources: of("2").resources })
      .build(),
    pod("part").container("app", of("1500m")).build(),
    pod("burstable")
      .container("app", { resources: { requests: { cpu: "2" } } })
      .build(),
  ];
  const node = (more: readonly string[] = []): TopologyNode =>
    new TopologyNode(machine({ sockets: 1, cores: 4 }), [...flags, ...more], { cpus: 1, memoryMi: 300 });
  const adopt = async (on: TopologyNode, each: Pod): Promise<unknown> =>
    on.topology.allocators[0]?.adopt(each, { signal: new AbortController().signal });

  test("get what they would get today, on the disk too", async () => {
    const on = node();
    for (const each of running) assert.equal(await adopt(on, each), undefined);
    assert.deepEqual([...on.topology.cpus.state.entries.keys()], ["uid-of-web"]);
    // Memory does not depend on whole CPUs.
    assert.deepEqual([...on.topology.memory.state.holders()], ["uid-of-web", "uid-of-part"]);
    on.start();
    assert.equal(cpusOf(on, "web"), "1,5");
    assert.equal(formatCpuSet(on.topology.cpus.state.shared), "0,2-4,6-7");
  });

  test("get it as a whole with pod-level resources, where those are managed", async () => {
    const gate = "--feature-gates=CPUManagerPolicyAlphaOptions=true,PodLevelResourceManagers=true";
    const on = node([gate, "--topology-manager-policy=restricted", "--topology-manager-scope=pod"]);
    const level = pod("level")
      .container("app", of("1"))
      .container("rest")
      .with({ resources: of("2", { memory: "2Gi" }).resources })
      .build();
    assert.equal(await adopt(on, level), undefined);
    assert.equal(on.topology.cpus.state.podEntries.get("uid-of-level")?.size, 2);
    assert.equal(cpusOf(on, "level")?.split(",").length, 1);
    const { body } = await on.metrics.expose();
    await adopt(on, level);
    assert.equal((await on.metrics.expose()).body, body, "what it has is not asked for again");
  });

  describe("with init containers", () => {
    const sidecar = { ...of("1"), restartPolicy: "Always" };
    const web = pod("web")
      .init("setup", of("4"))
      .init("proxy", sidecar)
      .init("migrate", of("5"))
      .container("app", of("1"));
    const createdIn = (on: TopologyNode, sandbox: "ready" | "notReady", names: readonly string[]): void => {
      const sandboxes = [{ id: "sandbox", state: sandbox }];
      const containers = names.map((name) => ({ name, sandboxId: "sandbox" }));
      // reason: nothing else of it is read
      on.observed.push({ uid: "uid-of-web", name: "web", sandboxes, containers } as never);
    };
    const created = (on: TopologyNode, ...names: readonly string[]): void => createdIn(on, "ready", names);
    const held = ({ topology }: TopologyNode): readonly unknown[] => [
      Object.fromEntries([...topology.cpus.state.ofPod("uid-of-web")].map(([name, { size }]) => [name, size])),
      [...(topology.memory.state.entries.get("uid-of-web")?.keys() ?? [])],
      (topology.memory.state.nodes.get(0)?.tables.get("memory")?.reserved ?? 0) / 2 ** 30,
    ];

    test("get nothing for those that have completed", async () => {
      const on = node();
      created(on, "setup", "proxy", "migrate", "app");
      assert.equal(await adopt(on, web.build()), undefined);
      assert.deepEqual(held(on), [{ proxy: 1, app: 1 }, ["proxy", "app"], 2]);
    });

    test("get what all need in a new sandbox, where those that had completed run again", async () => {
      const on = node();
      createdIn(on, "notReady", ["setup", "proxy", "migrate", "app"]);
      assert.equal(await adopt(on, web.build()), undefined);
      assert.deepEqual(held(on)[0], { setup: 4, proxy: 1, migrate: 5, app: 1 });
    });

    test("get what those that have not completed need", async () => {
      const on = node();
      created(on, "setup", "proxy", "migrate");
      assert.equal(await adopt(on, web.build()), undefined);
      assert.deepEqual(held(on)[0], { proxy: 1, migrate: 5, app: 1 });
    });

    test("get what they need now, also if there was no room for their init containers", async () => {
      const on = node();
      created(on, "app");
      await on.admit(whole("other", 3));
      assert.equal(await adopt(on, web.build()), undefined);
      assert.deepEqual(held(on)[0], { proxy: 1, app: 1 });
    });

    test("are not Guaranteed because the only one that is not has completed", async () => {
      const on = node();
      created(on, "app");
      await adopt(on, pod("web").init("setup").container("app", of("1")).build());
      assert.deepEqual(held(on), [{}, [], 0]);
    });

    test("with pod-level resources lack nothing if only one that has completed got something", async () => {
      const on = node(["--feature-gates=PodLevelResourceManagers=true"]);
      const level = pod("web")
        .init("setup", of("1"))
        .container("app")
        .with({ resources: of("2").resources })
        .build();
      assert.equal(on.topology.allocators[0]?.isLackedBy(level), true);
      created(on, "app");
      assert.equal(on.topology.allocators[0]?.isLackedBy(level), false);
      const before = (await on.metrics.expose()).body;
      await adopt(on, level);
      assert.equal((await on.metrics.expose()).body, before);
    });
  });

  const lacking: readonly {
    name: string;
    pod: Pod;
    scope?: string;
    want: boolean;
  }[] = [
    { name: "whole CPUs", pod: whole("lacks", 2), want: true },
    { name: "parts of CPUs", pod: pod("lacks").container("app", of("1500m")).build(), want: true },
    {
      name: "whole CPUs of an init container alone",
      pod: pod("lacks").init("setup", of("1")).container("app", of("500m")).build(),
      want: true,
    },
    {
      name: "nothing for itself",
      pod: pod("lacks")
        .container("app", { resources: { requests: { cpu: "2", memory: "1Gi" } } })
        .build(),
      want: false,
    },
    {
      name: "whole CPUs as a pod that its containers share",
      scope: "pod",
      pod: pod("lacks")
        .container("app")
        .with({ resources: of("2").resources })
        .build(),
      want: true,
    },
    {
      name: "parts of CPUs as a pod, with a container that has whole ones",
      pod: pod("lacks")
        .container("app", of("1"))
        .container("log")
        .with({ resources: of("1500m", { memory: "2Gi" }).resources })
        .build(),
      want: true,
    },
  ];
  for (const { name, pod: each, scope = "container", want } of lacking) {
    test(`lack what they would get today: a pod that asks for ${name}`, async () => {
      const gates = "--feature-gates=CPUManagerPolicyAlphaOptions=true,PodLevelResourceManagers=true";
      const on = node([gates, "--topology-manager-policy=best-effort", `--topology-manager-scope=${scope}`]);
      const lacks = () => on.topology.allocators[0]?.isLackedBy(each);
      assert.equal(lacks(), want);
      await adopt(on, each);
      assert.equal(lacks(), false);
    });
  }

  test("keep what they have, also if it could not be aligned today", async () => {
    const on = node();
    assert.equal(await on.admit(whole("web", 2)), undefined);
    on.start([...flags, "--topology-manager-policy=restricted"]);
    const held = () => [cpusOf(on, "web"), on.topology.memory.state.blocks("uid-of-web", "app")];
    const before = held();
    // What it has is not what it asks for any more.
    assert.equal(await adopt(on, whole("web", 3)), undefined);
    assert.deepEqual(held(), before);
    assert.equal(cpusOf(on, "web"), "1,5");
  });

  test("that get nothing for themselves need no disk, and are admitted without one", async () => {
    const on = node();
    await on.clock.advance(0);
    on.fault = new Error("no space left on device");
    const burstable = running.at(-1) ?? assert.fail();
    assert.equal(await adopt(on, burstable), undefined);
    assert.equal(await on.admit(burstable), undefined);
  });

  for (const scope of ["container", "pod"]) {
    test(`get CPUs where their memory is: scope ${scope}`, async () => {
      const memoryFlags = ["--memory-manager-policy=Static", "--reserved-memory=0:memory=512Mi"];
      const two = machine({ sockets: 2, cores: 2, memoryBytes: 4 * 2 ** 30 });
      const on = new TopologyNode(two, memoryFlags, { cpus: 1, memoryMi: 512 });
      // Node 0 has less than that: 512 MiB are reserved.
      const web = pod("web")
        .container("app", of("2", { memory: "3800Mi" }))
        .build();
      assert.equal(await on.admit(web), undefined);
      on.files.delete(CPU_FILE);
      const aligned = ["--topology-manager-policy=single-numa-node", `--topology-manager-scope=${scope}`];
      on.start([...memoryFlags, STATIC, ...aligned]);
      assert.equal(await adopt(on, web), undefined);
      assert.equal(cpusOf(on, "web"), "2,6");
    });
  }

  test("that are too large are told, and leave all as it was", async () => {
    const on = node();
    const rejection = (await adopt(on, whole("web", 8))) as { reason: string; message: string };
    assert.equal(rejection.reason, "UnexpectedAdmissionError");
    assert.match(rejection.message, /requested=8, available=7/);
    assert.deepEqual([[...on.topology.cpus.state.holders()], [...on.topology.memory.state.holders()]], [[], []]);
  });
});

describe("CPUs and memory together", () => {
  for (const scope of ["container", "pod"]) {
    test(`that a pod has are its own when it is admitted again, also on a full node: scope ${scope}`, async () => {
      const two = machine({ sockets: 2, cores: 2, memoryBytes: 4 * 2 ** 30 });
      const flags = [
        STATIC,
        "--memory-manager-policy=Static",
        "--reserved-memory=0:memory=512Mi",
        "--topology-manager-policy=single-numa-node",
        `--topology-manager-scope=${scope}`,
      ];
      const node = new TopologyNode(two, flags, { cpus: 1, memoryMi: 512 });
      const full = (name: string, cpus: string, memory: string): Pod =>
        pod(name).container("app", of(cpus, { memory })).build();
      const [one, other] = [full("one", "4", "4Gi"), full("other", "3", "3Gi")];
      for (const each of [one, other]) assert.equal(await node.admit(each), undefined);
      const files = () => [node.files.get(CPU_FILE), node.files.get(MEMORY_FILE)];
      const before = files();
      node.start();
      for (const each of [one, other]) assert.equal(await node.admit(each), undefined);
      await node.clock.advance(0);
      assert.deepEqual(files(), before);
      const changed = await node.admit(full("other", "2", "3Gi"));
      assert.equal(changed?.reason, "TopologyAffinityError", "what it has is not what it asks for");
    });
  }

  test("are on nodes that are close together, if that is asked for", async () => {
    const four = machine({ sockets: 2, nodes: 2, cores: 2 });
    const flags = [STATIC, "--topology-manager-policy=best-effort"];
    const closest = "--topology-manager-policy-options=prefer-closest-numa-nodes=true";
    const nodes: string[] = [];
    for (const more of [[], [closest]]) {
      // Node 0 has nothing to give: two of the others are needed.
      const node = new TopologyNode(four, [...flags, ...more, "--reserved-cpus=0,1,8,9"], { cpus: 4 });
      assert.equal(await node.admit(whole("web", 6)), undefined);
      const numa = new Map(four.cpus.map((place) => [place.cpu, place.numa]));
      nodes.push([...new Set([...parseCpuSet(cpusOf(node, "web") ?? "")].map((cpu) => numa.get(cpu)))].sort().join());
    }
    assert.deepEqual(nodes, ["1,2", "2,3"]);
  });

  test("are aligned on eight NUMA nodes at most, or on as many as an option says", () => {
    const nine = machine({ sockets: 9, cores: 1 });
    const restricted = "--topology-manager-policy=restricted";
    const more = (most: number) => `--topology-manager-policy-options=max-allowable-numa-nodes=${most}`;
    const start = (on: ReturnType<typeof machine>, ...flags: readonly string[]) => new TopologyNode(on, flags);
    assert.throws(
      () => start(nine, restricted),
      /^ConfigurationError: topologyManagerPolicy restricted: unsupported on machines with more than 8 NUMA Nodes; this one has 9: set max-allowable-numa-nodes in topologyManagerPolicyOptions$/,
    );
    start(machine({ sockets: 8, cores: 1 }), restricted);
    start(nine, restricted, more(9));
    start(nine);
    start(machine({ sockets: 32, cores: 1 }), restricted, more(64));
  });

  test("cannot be on the closest nodes where the kernel does not tell which those are", () => {
    const two = machine({ sockets: 2, cores: 2 });
    const silent = { ...two, nodes: two.nodes.map((node) => ({ ...node, distances: [10] })) };
    const flags = ["--topology-manager-policy=restricted"];
    const closest = "--topology-manager-policy-options=prefer-closest-numa-nodes=true";
    new TopologyNode(silent, flags);
    assert.throws(
      () => new TopologyNode(silent, [...flags, closest]),
      /^ConfigurationError: .*error getting NUMA distances from the kernel$/,
    );
  });

  test("are on one NUMA node, or the message tells what each lacks", async () => {
    const two = machine({ sockets: 2, cores: 2, memoryBytes: 4 * 2 ** 30 });
    const flags = [
      STATIC,
      "--memory-manager-policy=Static",
      "--reserved-memory=0:memory=512Mi",
      "--topology-manager-policy=single-numa-node",
    ];
    const node = new TopologyNode(two, flags, { cpus: 1, memoryMi: 512 });
    const web = pod("web")
      .container("app", of("3", { memory: "3800Mi" }))
      .build();
    assert.equal(await node.admit(web), undefined);
    assert.equal(cpusOf(node, "web"), "2-3,6");
    const rejection = await node.admit(
      pod("other")
        .container("app", of("4", { memory: "1Gi" }))
        .build(),
    );
    assert.equal(rejection?.reason, "TopologyAffinityError");
    assert.match(
      rejection?.message ?? "",
      /: NUMA node 0: cpu short by 1 \(requested 4, free 3\); NUMA node 1: cpu short by 3 \(requested 4, free 1\), memory short by \d+ /,
    );
  });
});
