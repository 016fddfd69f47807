import assert from "node:assert/strict";
import { test } from "node:test";
import { machine } from "../../../test/support/machine.ts";
import { pod } from "../../../test/support/pods.ts";
import { TopologyNode } from "../../../test/support/topology-node.ts";

const FLAGS = ["--memory-manager-policy=Static", "--reserved-memory=0:memory=512Mi"];
const two = machine({ sockets: 2, cores: 2, memoryBytes: 4 * 2 ** 30 });
const wants = (name: string, memory: string) => {
  const amounts = { cpu: "1", memory };
  return pod(name)
    .container("app", { resources: { requests: amounts, limits: amounts } })
    .build();
};

/** Requests and errors. */
async function counted(node: TopologyNode): Promise<readonly number[]> {
  const { body } = await node.metrics.expose();
  return ["requests", "errors"].map((what) => {
    const found = new RegExp(`^kubelet_memory_manager_pinning_${what}_total (\\d+)$`, "m").exec(body);
    return Number(found?.[1] ?? 0);
  });
}

test("memory that was given counts as a request, and only what was refused as an error", async () => {
  const node = new TopologyNode(two, FLAGS, { memoryMi: 512 });
  assert.equal(await node.admit(wants("web", "1Gi")), undefined);
  assert.deepEqual(await counted(node), [1, 0]);
  assert.notEqual(await node.admit(wants("large", "9Gi")), undefined);
  assert.deepEqual(await counted(node), [2, 1]);
});

test("memory of a pod as a whole counts once, and for its init containers and those with a part of their own", async () => {
  const flags = [
    ...[...FLAGS, "--feature-gates=PodLevelResourceManagers=true"],
    ...["--topology-manager-policy=restricted", "--topology-manager-scope=pod"],
  ];
  const node = new TopologyNode(two, flags, { memoryMi: 512 });
  const own = (memory: string) => ({ limits: { cpu: "1", memory }, requests: { cpu: "1", memory } });
  const level = pod("level")
    .init("setup")
    .init("proxy", { restartPolicy: "Always" })
    .init("migrate", { resources: own("1Gi") })
    .container("app", { resources: own("512Mi") })
    .container("log")
    .with({ resources: { ...own("2Gi") } })
    .build();
  assert.equal(await node.admit(level), undefined);
  assert.deepEqual(await counted(node), [5, 0]);
});
