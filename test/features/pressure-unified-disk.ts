/**
 * A node that runs short of process ids, disk and inodes on cgroup v2 with systemd: who is evicted, and that all others
 * stay. Elsewhere `test/cluster/eviction.ts` has the same on a real control plane.
 */
import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { readTasks } from "../../src/adapters/host/node-usage.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { FOREVER } from "../integration/support/manifests.ts";
import { requireMachine } from "../integration/support/site.ts";
import { hasCondition, type SmallCluster } from "../support/small-cluster.ts";
import { instanceOf, isEvicted, MI, UnifiedNode, whyNoUnifiedNode } from "../support/unified-node.ts";

requireMachine();

/** Tasks that may come beside those of now before there is pressure, and those that a pod makes to get there. */
const FEW_TASKS = 150;
const MANY_TASKS = 250;
const VOLUME = { volumes: [{ name: "data", emptyDir: {} }] };
const MOUNT = { volumeMounts: [{ name: "data", mountPath: "/data" }] };

function availableTasks(): number {
  const { most, running } = readTasks() ?? { most: 0, running: 0 };
  return most - running;
}

describe("a node with unified cgroups that is short of process ids, disk and inodes", {
  skip: whyNoUnifiedNode(),
}, () => {
  let node: UnifiedNode;
  let site: SmallCluster;
  let kept: Pod;

  before(async () => {
    node = await UnifiedNode.start({
      evictionHard: {
        "memory.available": "100Mi",
        "nodefs.available": "30Mi",
        "nodefs.inodesFree": "200",
        "pid.available": String(availableTasks() - FEW_TASKS),
      },
    });
    site = node.cluster;
    site.create("kept", FOREVER, { container: { resources: { requests: { memory: "20Mi" } } } });
    kept = await site.running("kept");
  });
  after(() => node?.close());

  it("process ids: the pod with most of them is evicted", async () => {
    const many = `trap 'kill $(jobs -p); exit 0' TERM; i=0; while [ $i -lt ${MANY_TASKS} ]; do sleep 3600 & i=$((i+1)); done; wait`;
    site.create("forks", many);
    await site.nodeIs("has PID pressure", hasCondition("PIDPressure", "True"));
    const { status } = await site.podIs("forks", "is evicted", isEvicted);
    assert.match(
      status?.message ?? "",
      /^The node was low on resource: pids\. Threshold quantity: \d+, available: \d+\. $/,
    );
    await site.nodeIs("has process ids again", hasCondition("PIDPressure", "False"));
  });

  it("disk: the pod that fills it is evicted, and its space is free again", async () => {
    const { bavail, bsize } = statfsSync(site.root);
    const count = Math.floor((bavail * bsize) / MI) - 15;
    const container = MOUNT;
    site.create("filler", `dd if=/dev/zero of=/data/f bs=1M count=${count}; ${FOREVER}`, { ...VOLUME, container });
    const { status } = await site.podIs("filler", "is evicted", isEvicted);
    assert.match(
      status?.message ?? "",
      /^The node was low on resource: ephemeral-storage\. Threshold quantity: 30Mi, /,
    );
    await site.nodeIs("has space again", hasCondition("DiskPressure", "False"));
  });

  it("inodes: the pod with the many files is evicted", async () => {
    const count = statfsSync(site.root).ffree - 100;
    const files = `i=0; while [ $i -lt ${count} ]; do : > /data/$i; i=$((i+1)); done; ${FOREVER}`;
    site.create("files", files, { ...VOLUME, container: MOUNT });
    const { status } = await site.podIs("files", "is evicted", isEvicted);
    assert.match(
      status?.message ?? "",
      /^The node was low on resource: inodes\. Threshold quantity: 200, available: \d+\. $/,
    );
    await site.nodeIs("has inodes again", hasCondition("DiskPressure", "False"));
  });

  it("nobody was evicted twice, and the pod that took nothing runs on as it was", async () => {
    assert.equal(instanceOf(site.pod("kept") ?? kept), instanceOf(kept));
    assert.deepEqual(await node.evictions(), {
      pods: ["files 1", "filler 1", "forks 1"],
      signals: ["nodefs.available 1", "nodefs.inodesFree 1", "pid.available 1"],
    });
  });
});
