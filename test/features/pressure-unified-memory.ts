/**
 * A node that runs short of memory on cgroup v2 with systemd, with memory QoS and swap on: who is evicted, and that all
 * others stay. Elsewhere `test/cluster/eviction.ts` has the same on a real control plane.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import { FOREVER } from "../integration/support/manifests.ts";
import { requireMachine } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { hasCondition, type SmallCluster } from "../support/small-cluster.ts";
import {
  instanceOf,
  isEvicted,
  MI,
  memoryInfo,
  PODS_MEMORY,
  read,
  UnifiedNode,
  whyNoUnifiedNode,
} from "../support/unified-node.ts";

requireMachine();

const CONFIG = {
  featureGates: { MemoryQoS: true },
  memoryReservationPolicy: "TieredReservation",
  memorySwap: { swapBehavior: "LimitedSwap" },
  evictionHard: { "memory.available": "100Mi" },
  evictionSoft: { "allocatableMemory.available": "180Mi" },
  // Much time: the machine is slow.
  evictionSoftGracePeriod: { "allocatableMemory.available": "60s" },
};

/** Holds this much memory until it is told to stop. */
const holds = (mebi: number): string =>
  `trap 'kill $!; exit 0' TERM; dd if=/dev/zero bs=${mebi}M count=1 2>/dev/null | sleep 3600 & while :; do wait; done`;

describe("a node with unified cgroups that is short of memory", { skip: whyNoUnifiedNode() }, () => {
  let node: UnifiedNode;
  let site: SmallCluster;
  let kept: Pod;

  before(async () => {
    node = await UnifiedNode.start(CONFIG, { hasSwap: true });
    site = node.cluster;
    site.create("kept", FOREVER, { container: { resources: { requests: { memory: "20Mi" } } } });
    kept = await site.running("kept");
  });
  after(() => node?.close());

  it("what pods request is protected on every level, and they are throttled before their limit", () => {
    const wanted = String(20 * MI);
    assert.equal(read(node.slice(), "memory.min"), wanted);
    assert.equal(read(node.slice("burstable"), "memory.low"), wanted);
    assert.equal(read(node.podSlice(kept), "memory.low"), wanted);
    assert.equal(read(node.scopeOf(kept), "memory.low"), wanted);
    assert.equal(read(node.slice(), "memory.max"), String(Math.floor(PODS_MEMORY / 4096) * 4096));
    // 90 % of the way from the request to what all pods have.
    assert.equal(read(node.scopeOf(kept), "memory.high"), String(Math.floor((20 + 280 * 0.9) * 256) * 4096));
  });

  it("the pod that takes it is evicted, and no other; the condition rises and falls", async () => {
    site.create("hog", holds(230));
    await site.nodeIs("has memory pressure", hasCondition("MemoryPressure", "True"));
    const { status } = await site.podIs("hog", "is evicted", isEvicted);
    assert.match(
      status?.message ?? "",
      /^The node was low on resource: memory\. Threshold quantity: 100Mi, available: \d+[KM]?i?\. Container main was using \d+[KM]i, request is 0, /,
    );
    await site.nodeIs("has enough memory again", hasCondition("MemoryPressure", "False"));
  });

  it("what a pod frees within the grace period of a soft threshold costs no pod", async () => {
    // Between the thresholds: 300 MiB less 140 are below the soft one and above the hard one.
    site.create("brief", `dd if=/dev/zero bs=140M count=1 2>/dev/null | sleep 8; ${FOREVER}`);
    await site.nodeIs("has memory pressure", hasCondition("MemoryPressure", "True"));
    await site.nodeIs("has enough memory again", hasCondition("MemoryPressure", "False"));
    const { status } = await site.running("brief");
    assert.deepEqual([status?.phase, status?.containerStatuses?.[0]?.restartCount], ["Running", 0]);
    await site.remove("brief");
  });

  it("a burstable pod has its part of the swap, and goes beyond its memory limit with it", async () => {
    const [request, limit] = [64, 68];
    const resources = { requests: { memory: `${request}Mi` }, limits: { memory: `${limit}Mi` } };
    site.create("swaps", holds(limit + 4), { container: { resources } });
    const pod = await site.running("swaps");
    const swapBytes = memoryInfo("SwapTotal");
    const part = Math.floor(((request * MI) / memoryInfo("MemTotal")) * swapBytes);
    assert.equal(read(node.scopeOf(pod), "memory.swap.max"), String(Math.floor(part / 4096) * 4096));
    await until("it swaps", () => Number(read(node.scopeOf(pod), "memory.swap.current")) > MI);
    assert.equal(read(node.scopeOf(kept), "memory.swap.current"), "0");
    await pause(1000);
    const { status } = await site.running("swaps");
    assert.deepEqual(
      [status?.containerStatuses?.[0]?.restartCount, instanceOf({ ...pod, status })],
      [0, instanceOf(pod)],
    );
    assert.equal(site.node?.status?.nodeInfo?.swap?.capacity, swapBytes);
  });

  it("a container that reaches its memory limit is killed with all its processes", async () => {
    const fill = "x=0123456789abcdef; while :; do x=$x$x; done";
    // With a request below its limit it would be throttled first, for minutes.
    const memory = "24Mi";
    const resources = { requests: { memory }, limits: { memory } };
    site.create("group", `(${fill}); sleep 3600`, { restartPolicy: "Never", container: { resources } });
    const { status } = await site.podIs("group", "has ended", (pod) => pod.status?.phase === "Failed");
    const ended = status?.containerStatuses?.[0]?.state?.terminated;
    assert.deepEqual([ended?.reason, ended?.exitCode], ["OOMKilled", 137]);
  });

  it("nobody was evicted twice, and the pod that took nothing runs on as it was", async () => {
    assert.equal(instanceOf(site.pod("kept") ?? kept), instanceOf(kept));
    assert.deepEqual(await node.evictions(), { pods: ["hog 1"], signals: ["allocatableMemory.available 1"] });
  });
});
