import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import type { Node, NodeStatus } from "../model/generated/types.ts";
import { nodeConditions } from "./conditions.ts";
import { metadataPatch, type NodeIdentity, type NodeStatusFacts, nodeStatus } from "./node-object.ts";
import { NodeReporter } from "./node-reporter.ts";

const identity: NodeIdentity = {
  name: "n1",
  architecture: "amd64",
  labels: { rack: "r1" },
  providerId: "",
  isExternalCloud: false,
  nodeIp: "",
  taints: [{ key: "new", effect: "NoSchedule" }],
  controllerAttaches: true,
};

/** A server that keeps one node, and a machine that is well or not. */
function site(
  existing?: Node,
  problems: readonly string[] = [],
  { zeroesExtended = false, registers = true }: { zeroesExtended?: boolean; registers?: boolean } = {},
) {
  const clock = new FakeClock();
  const world = { node: existing, away: false, problems, version: 1, isShort: false };
  const inherited: string[] = [];
  const patches: { status: NodeStatus }[] = [];
  const events: string[] = [];
  const stored = (node: Node): Node => {
    const metadata = {
      ...node.metadata,
      uid: node.metadata.uid ?? `uid-${world.version}`,
      resourceVersion: String(++world.version),
    };
    world.node = { ...node, metadata };
    return world.node;
  };
  const check = (): void => {
    if (world.away) throw new ApiError("Unavailable", "away");
  };
  const api = {
    get: async () => {
      check();
      if (world.node === undefined) throw new ApiError("NotFound", "no node");
      return world.node;
    },
    create: async (_resource: unknown, { object }: { object: Node }) => {
      check();
      if (world.node !== undefined) throw new ApiError("AlreadyExists", "there is one");
      return stored(object);
    },
    patch: async (_resource: unknown, { body }: { body: { metadata?: Node["metadata"]; status?: NodeStatus } }) => {
      check();
      if (world.node === undefined) throw new ApiError("NotFound", "no node");
      if (body.status !== undefined) patches.push({ status: body.status });
      const labels = { ...world.node.metadata.labels, ...body.metadata?.labels };
      return stored({
        ...world.node,
        metadata: { ...world.node.metadata, labels },
        status: { ...world.node.status, ...body.status },
      });
    },
  };
  const gather = async (previous: NodeStatus | undefined): Promise<NodeStatusFacts> => {
    const now = new Date(clock.now().wall).toISOString();
    const health = { memoryPressure: world.isShort, diskPressure: false, pidPressure: false, problems: world.problems };
    return {
      addresses: [],
      resources: { capacity: { cpu: "2" }, allocatable: { cpu: "2" } },
      conditions: nodeConditions(health, previous?.conditions, now),
      port: 10250,
      images: [],
      handlers: [],
      supplementalGroupsPolicy: undefined,
      declaredFeatures: [],
      info: {
        machineId: "m",
        systemUuid: "s",
        bootId: "b1",
        kernel: "k",
        osImage: "o",
        runtime: "fake://1",
        kubeletVersion: "v1.36.3",
        swapBytes: 0,
      },
    };
  };
  const reporter = new NodeReporter(
    // The fake speaks of one node only.
    {
      api: api as never,
      clock,
      log: silent,
      random: () => 0.5,
      gather,
      event: (_type, reason) => events.push(reason),
      inherit: (conditions) => {
        inherited.push(...conditions);
        world.isShort = conditions.includes("MemoryPressure");
        return world.isShort;
      },
    },
    { identity, registers, zeroesExtended, frequency: fixed({ updateMs: 10_000, reportMs: 300_000 }) },
  );
  const stop = manyListeners();
  const running = reporter.run(stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { clock, world, patches, events, inherited, reporter, end };
}

const readyOf = (node: Node | undefined): string | undefined =>
  node?.status?.conditions?.find(({ type }) => type === "Ready")?.status;

test("a new node registers itself with labels, taints and its state", async () => {
  const { clock, world, end } = site();
  await clock.advance(0);
  assert.equal(world.node?.metadata.labels?.["rack"], "r1");
  assert.equal(world.node?.metadata.labels?.["kubernetes.io/arch"], "amd64");
  assert.deepEqual(world.node?.spec.taints, [{ key: "new", effect: "NoSchedule" }]);
  assert.equal(readyOf(world.node), "True");
  await end();
});

test("a new node has its state from its registration: nothing is sent after it", async () => {
  const { clock, world, patches, end } = site();
  await clock.advance(0);
  assert.equal(readyOf(world.node), "True");
  assert.deepEqual(patches, []);
  await end();
});

test("a node that is there keeps its taints and others' labels, and gets what it lacks", async () => {
  const old: Node = {
    metadata: { name: "n1", uid: "old", resourceVersion: "1", labels: { theirs: "x", "kubernetes.io/arch": "arm64" } },
    spec: { taints: [{ key: "kept", effect: "NoExecute" }] },
    status: { nodeInfo: { bootID: "b0" } as never },
  };
  const { clock, world, events, end } = site(old);
  await clock.advance(0);
  assert.equal(world.node?.metadata.uid, "old");
  assert.deepEqual(world.node?.spec.taints, [{ key: "kept", effect: "NoExecute" }]);
  assert.equal(world.node?.metadata.labels?.["theirs"], "x");
  assert.equal(world.node?.metadata.labels?.["kubernetes.io/arch"], "amd64");
  assert.equal(world.node?.metadata.labels?.["rack"], undefined);
  assert.ok(events.includes("Rebooted"));
  await end();
});

test("a state that stays is sent only when its time has come", async () => {
  const { clock, patches, end } = site();
  await clock.advance(0);
  const before = patches.length;
  await clock.advance(290_000);
  assert.equal(patches.length, before);
  await clock.advance(30_000);
  assert.equal(patches.length, before + 1);
  await end();
});

test("a change is sent at the next look, and looked for soon until the node is ready", async () => {
  const { clock, world, events, reporter, end } = site(undefined, ["container runtime is down"]);
  await clock.advance(0);
  assert.equal(readyOf(world.node), "False");
  world.problems = [];
  await clock.advance(200);
  assert.equal(readyOf(world.node), "True");
  world.problems = ["container runtime is down"];
  await clock.advance(1000);
  assert.equal(readyOf(world.node), "True");
  reporter.kick();
  await clock.advance(0);
  assert.equal(readyOf(world.node), "False");
  assert.deepEqual(
    events.filter((reason) => /Ready/.test(reason)),
    ["NodeNotReady", "NodeReady", "NodeNotReady"],
  );
  await end();
});

const since = "2026-01-01T00:00:00Z";
const wasReady: Node = {
  metadata: { name: "n1", uid: "old", resourceVersion: "1" },
  spec: {},
  status: { conditions: [{ type: "Ready", status: "True", reason: "KubeletReady", lastTransitionTime: since }] },
};

test("a new start of the agent does not make a ready node unready, while it finds its runtime", async () => {
  const { clock, world, patches, events, end } = site(wasReady, ["CSINode is not yet initialized"]);
  await clock.advance(5000);
  assert.equal(readyOf(world.node), "True");
  world.problems = [];
  await clock.advance(200);
  const ready = world.node?.status?.conditions?.find(({ type }) => type === "Ready");
  assert.deepEqual([ready?.status, ready?.lastTransitionTime], ["True", since]);
  for (const { status } of patches) assert.equal(readyOf({ metadata: {}, spec: {}, status }), "True");
  assert.ok(!events.includes("NodeNotReady"));
  world.problems = ["container runtime is down"];
  await clock.advance(10_500);
  assert.equal(readyOf(world.node), "False");
  await end();
});

test("a ready node whose runtime is not found after a new start is unready after a while", async () => {
  const { clock, world, end } = site(wasReady, ["container runtime is down"]);
  await clock.advance(9000);
  assert.equal(readyOf(world.node), "True");
  await clock.advance(1500);
  assert.equal(readyOf(world.node), "False");
  await end();
});

test("a deleted Node object is not created again; one that appears under the name is reported on", async () => {
  const { clock, world, reporter, end } = site();
  await clock.advance(0);
  world.node = undefined;
  reporter.observed(undefined);
  await clock.advance(60_000);
  assert.equal(world.node, undefined);
  assert.equal(reporter.current?.metadata.uid, undefined);
  world.node = { metadata: { name: "n1", uid: "theirs", resourceVersion: "2000" }, spec: {} };
  await clock.advance(20_000);
  assert.equal(reporter.current?.metadata.uid, "theirs");
  assert.equal(readyOf(world.node), "True");
  await end();
});

test("an extended resource that somebody patched into the capacity becomes allocatable", async () => {
  const { clock, world, reporter, end } = site();
  await clock.advance(0);
  assert.ok(world.node);
  const capacity = { cpu: "2", "example.com/dongle": "4" };
  const metadata = { ...world.node.metadata, resourceVersion: "1000" };
  world.version = 1000;
  world.node = { ...world.node, metadata, status: { ...world.node.status, capacity } };
  reporter.observed(world.node);
  await clock.advance(11_000);
  assert.deepEqual(world.node.status?.allocatable, { "example.com/dongle": "4" });
  await end();
});

test("a machine without devices of an earlier agent zeroes the extended resources of its Node object, once", async () => {
  const capacity = { cpu: "1", "example.com/dongle": "4" };
  const existing: Node = { metadata: { name: "n1", uid: "u" }, spec: {}, status: { capacity, allocatable: capacity } };
  const { clock, world, reporter, end } = site(existing, [], { zeroesExtended: true });
  await clock.advance(0);
  assert.equal(world.node?.status?.capacity?.["example.com/dongle"], "0");
  assert.equal(world.node?.status?.allocatable?.["example.com/dongle"], "0");
  assert.equal(world.node?.status?.capacity?.["cpu"], "2");
  world.version = 1000;
  world.node = { ...world.node, metadata: { ...world.node.metadata, resourceVersion: "1000" }, status: { capacity } };
  reporter.observed(world.node);
  await clock.advance(11_000);
  assert.equal(world.node?.status?.allocatable?.["example.com/dongle"], "4");
  await end();
});

test("the Node object can be fetched on demand", async () => {
  const { clock, world, reporter, end } = site();
  await clock.advance(0);
  assert.ok(world.node);
  const metadata = { ...world.node.metadata, resourceVersion: "1000", labels: { zone: "a" } };
  world.node = { ...world.node, metadata };
  await reporter.refetch(manyListeners());
  assert.equal(reporter.current?.metadata.labels?.["zone"], "a");
  world.away = true;
  await reporter.refetch(manyListeners());
  await end();
});

test("runtime handlers are reported in one order", () => {
  const handler = (name: string) => ({ name, recursiveReadOnlyMounts: false, userNamespaces: false });
  const facts = (names: readonly string[]): NodeStatusFacts => ({
    addresses: [],
    conditions: [],
    port: 1,
    images: [],
    declaredFeatures: [],
    supplementalGroupsPolicy: undefined,
    resources: { capacity: {}, allocatable: {} },
    info: {
      machineId: "m",
      systemUuid: "s",
      bootId: "b1",
      kernel: "k",
      osImage: "o",
      runtime: "fake://1",
      kubeletVersion: "v1.36.3",
      swapBytes: 0,
    },
    handlers: names.map(handler),
  });
  const names = (given: readonly string[]): unknown =>
    nodeStatus(facts(given), "amd64").runtimeHandlers?.map(({ name }) => name);
  assert.deepEqual(names(["runc", "", "kata"]), ["", "kata", "runc"]);
  assert.deepEqual(names(["kata", "runc", ""]), ["", "kata", "runc"]);
});

test("a label of the system that somebody removes or changes is restored, others are not", async () => {
  const { clock, world, reporter, end } = site();
  await clock.advance(0);
  assert.ok(world.node);
  const changed = { mine: "yes", "kubernetes.io/arch": "pdp11" };
  const metadata = { ...world.node.metadata, labels: changed, resourceVersion: "1000" };
  world.node = { ...world.node, metadata };
  reporter.observed(world.node);
  world.version = 1000;
  await clock.advance(11_000);
  const labels = { mine: "yes", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" };
  assert.deepEqual(world.node.metadata.labels, labels);
  await end();
});

test("a server that is away at the start is asked until it is there", async () => {
  const { clock, world, end } = site();
  world.away = true;
  await clock.advance(20_000);
  assert.equal(world.node, undefined);
  world.away = false;
  await clock.advance(8000);
  assert.equal(readyOf(world.node), "True");
  await end();
});

test("an older version of the node, told late by the watch, is not taken", async () => {
  const { clock, world, reporter, end } = site();
  await clock.advance(0);
  const newest = reporter.current;
  assert.ok(world.node);
  reporter.observed({ ...world.node, metadata: { ...world.node.metadata, resourceVersion: "1" } });
  assert.equal(reporter.current, newest);
  await end();
});

const addressCases = [
  {
    name: "a given address",
    nodeIp: "192.0.2.1,2001:db8::1",
    cloud: true,
    has: undefined,
    want: "192.0.2.1,2001:db8::1",
  },
  { name: "an address that is annotated already", nodeIp: "192.0.2.1", cloud: true, has: "192.0.2.1", want: undefined },
  { name: "only a family", nodeIp: "::", cloud: true, has: "192.0.2.1", want: null },
  { name: "no external cloud provider", nodeIp: "192.0.2.1", cloud: false, has: "192.0.2.1", want: null },
  { name: "nothing", nodeIp: "", cloud: true, has: undefined, want: undefined },
];
for (const { name, nodeIp, cloud, has, want } of addressCases) {
  test(`the annotation of the provided node IP: ${name}`, () => {
    const key = "alpha.kubernetes.io/provided-node-ip";
    const labels = { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" };
    const node: Node = { metadata: { labels, ...(has !== undefined && { annotations: { [key]: has } }) }, spec: {} };
    const patch = metadataPatch(node, { ...identity, nodeIp, isExternalCloud: cloud });
    assert.deepEqual(patch, want === undefined ? undefined : { annotations: { [key]: want } });
  });
}

test("a pressure of before the start is not reported as over by the first status", async () => {
  const now = "2026-01-01T00:00:00Z";
  const health = { memoryPressure: true, diskPressure: false, pidPressure: false, problems: [] };
  const status = { conditions: nodeConditions(health, undefined, now) };
  const existing: Node = { metadata: { name: "n1", uid: "u", resourceVersion: "1" }, spec: {}, status };
  const { clock, patches, inherited, end } = site(existing);
  await clock.advance(60_000);
  assert.deepEqual(inherited, ["MemoryPressure", "Ready"], "once");
  const reported = patches.flatMap(({ status: { conditions = [] } }) => conditions);
  const memory = reported.filter(({ type }) => type === "MemoryPressure").map((one) => one.status);
  assert.equal(memory.includes("False"), false, memory.join());
  await end();
});

test("the reboot of a machine whose agent does not register its node is reported once", async () => {
  const status = { nodeInfo: { bootID: "b0" } as never };
  const existing: Node = { metadata: { name: "n1", uid: "u", resourceVersion: "1" }, spec: {}, status };
  const { clock, events, end } = site(existing, [], { registers: false });
  await clock.advance(60_000);
  assert.deepEqual(
    events.filter((reason) => reason === "Rebooted"),
    ["Rebooted"],
  );
  await end();
});
