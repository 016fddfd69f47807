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

test("memory that was given counts as a request, and only what was refused as an error", async () => {
  const node = new TopologyNode(two, FLAGS, { memoryMi: 512 });
  const counted = async () => {
    const { body } = await node.metrics.expose();
    return ["requests", "errors"].map((what) => {
      const found = new RegExp(`^kubelet_memory_manager_pinning_${what}_total (\\d+)$`, "m").exec(body);
      return Number(found?.[1] ?? 0);
    });
  };
  assert.equal(await node.admit(wants("web", "1Gi")), undefined);
  assert.deepEqual(await counted(), [1, 0]);
  assert.notEqual(await node.admit(wants("large", "9Gi")), undefined);
  assert.deepEqual(await counted(), [2, 1]);
});
