import assert from "node:assert/strict";
import { test } from "node:test";
import { pod, sandbox, seen } from "../../../test/support/pods.ts";
import { Metrics } from "../../lib/metrics.ts";
import { declareNodeGauges } from "./node-gauges.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("the gauges are read from what there is", async () => {
  const metrics = new Metrics();
  const [web, other] = [pod("web").container("app").build(), pod("other").container("app").build()];
  const annotations = { "kubernetes.io/config.source": "file" };
  const fixed = { ...other, metadata: { ...other.metadata, annotations } };
  const wanted = [web, fixed].map((one) => ({
    uid: one.metadata.uid ?? "",
    pod: one,
    source: "api",
    warnings: [],
    seenAt: 0,
  }));
  const observed = (uid: string, isReady: boolean) => ({
    uid,
    name: uid,
    namespace: "default",
    readAt: 0,
    sandboxes: [sandbox({ state: isReady ? "ready" : "notReady" })],
    containers: [seen({ name: "app" }), seen({ name: "app" }, { state: "exited" })],
  });
  declareNodeGauges(metrics, {
    nodeName: "here",
    desired: { list: () => wanted, get: (uid) => wanted.find((one) => one.uid === uid) },
    pool: { uids: () => [], worker: () => undefined },
    observer: { list: () => [observed("uid-of-web", true), observed("uid-of-other", false)] },
    listedAt: () => ({ wall: 1_700_000_000_500 }),
  });
  assert.deepEqual(await linesOf(metrics, /^kubelet_/), [
    'kubelet_node_name{node="here"} 1',
    "kubelet_running_pods 1",
    'kubelet_running_containers{container_state="running"} 2',
    'kubelet_running_containers{container_state="exited"} 2',
    'kubelet_desired_pods{static=""} 1',
    'kubelet_desired_pods{static="true"} 1',
    "kubelet_managed_ephemeral_containers 0",
    "kubelet_pleg_last_seen_seconds 1700000000",
  ]);
});
