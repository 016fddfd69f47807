import assert from "node:assert/strict";
import { test } from "node:test";
import { pod, sandbox, seen } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import {
  measuredCgroups,
  relistMetrics,
  restClientMetrics,
  rotationMetrics,
  showAgent,
  showBuild,
  showCertificate,
  statusMetrics,
} from "./metrics.ts";

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
    ...{ uid: one.metadata.uid ?? "", pod: one, source: "api", warnings: [], seenAt: 0 },
  }));
  const observed = (uid: string, isReady: boolean) => ({
    ...{ uid, name: uid, namespace: "default", readAt: 0 },
    sandboxes: [sandbox({ state: isReady ? "ready" : "notReady" })],
    containers: [seen({ name: "app" }), seen({ name: "app" }, { state: "exited" })],
  });
  showAgent(metrics, {
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
  assert.match((await linesOf(metrics, /^process_resident_memory_bytes/))[0] ?? "", / \d{7,}$/);
});

test("lists of the runtime are measured, and the time between them", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const listed = relistMetrics(metrics, clock);
  listed(500);
  await clock.advance(60_000);
  listed(1500);
  assert.deepEqual(await linesOf(metrics, /_(sum|count)/), [
    "kubelet_pleg_relist_duration_seconds_sum 2",
    "kubelet_pleg_relist_duration_seconds_count 2",
    "kubelet_pleg_relist_interval_seconds_sum 60",
    "kubelet_pleg_relist_interval_seconds_count 1",
  ]);
});

test("answers of the API server are counted", async () => {
  const metrics = new Metrics();
  const answered = restClientMetrics(metrics);
  for (const code of ["200", "200", "<error>"]) answered({ code, method: "GET", host: "api:6443" });
  assert.deepEqual(await linesOf(metrics, /^rest/), [
    'rest_client_requests_total{code="200",method="GET",host="api:6443"} 2',
    'rest_client_requests_total{code="<error>",method="GET",host="api:6443"} 1',
  ]);
});

test("a certificate counts down, and is for ever as long as there is none", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const facts = { failures: 2, expiresAt: clock.now().wall + 90_000 };
  showCertificate(metrics, clock, { kind: "client", facts: () => facts });
  showCertificate(metrics, clock, { kind: "server", facts: () => ({ failures: 0 }) });
  await clock.advance(30_000);
  assert.deepEqual(await linesOf(metrics, /^kubelet/), [
    "kubelet_certificate_manager_client_ttl_seconds 60",
    "kubelet_certificate_manager_client_expiration_renew_errors 2",
    "kubelet_certificate_manager_server_ttl_seconds +Inf",
    "kubelet_server_expiration_renew_errors 0",
  ]);
});

test("mirrors are counted among the pods of the server, and statuses measured", async () => {
  const metrics = new Metrics();
  const web = pod("web").build();
  const annotations = { "kubernetes.io/config.mirror": "hash" };
  const sent = statusMetrics(metrics, () => [web, { ...web, metadata: { ...web.metadata, annotations } }]);
  sent(2000);
  assert.deepEqual(await linesOf(metrics, /mirror|_sum/), [
    "kubelet_mirror_pods 1",
    "kubelet_pod_status_sync_duration_seconds_sum 2",
  ]);
});

test("changes of cgroups are measured, failed ones too, and their version told", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const tree = {
    ensure: () => clock.advance(500),
    set: () => Promise.reject(new Error("no")),
    forget: async () => undefined,
    exists: () => true,
    read: () => undefined,
    memoryUsage: () => 7,
  };
  const measured = measuredCgroups(metrics, clock, { tree, version: 2 });
  await measured.ensure("/a");
  await assert.rejects(measured.set("/a", {}), /no/);
  assert.equal(measured.memoryUsage("/a", "id"), 7);
  assert.deepEqual(await linesOf(metrics, /version|_sum|_count/), [
    "kubelet_cgroup_version 2",
    'kubelet_cgroup_manager_duration_seconds_sum{operation_type="create"} 0.5',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 1',
    'kubelet_cgroup_manager_duration_seconds_sum{operation_type="update"} 0',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="update"} 1',
  ]);
});

test("a serving certificate's life is measured when the next one comes", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const used = rotationMetrics(metrics, clock);
  used({ notBefore: clock.now().wall });
  await clock.advance(3_600_000);
  used({ notBefore: clock.now().wall });
  assert.deepEqual(await linesOf(metrics, /_sum/), ["kubelet_certificate_manager_server_rotation_seconds_sum 3600"]);
});

test("the program tells its version", async () => {
  const metrics = new Metrics();
  showBuild(metrics, "v1.36.3-mine");
  const [line = ""] = await linesOf(metrics, /^kubernetes_build_info/);
  assert.match(line, /\{major="1",minor="36",git_version="v1.36.3-mine",.*platform="linux\/\w+"\} 1$/);
});
