import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { DeviceBench } from "../../test/support/device-bench.ts";
import { pod } from "../../test/support/pods.ts";
import { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import { Metrics } from "../lib/metrics.ts";
import { ConfigError } from "../model/config-error.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { deviceContributor, mergeAnswers } from "./device-contributor.ts";
import { deviceHealth } from "./device-health.ts";
import { deviceReport } from "./device-report.ts";
import { podResourcesMetrics } from "./metrics.ts";
import { PodResources } from "./pod-resources.ts";

const GPU = "example.com/gpu";
const { signal } = new AbortController();
const asks: Partial<Container> = { resources: { limits: { [GPU]: "1" } } };

async function site() {
  const bench = new DeviceBench();
  const plugin = await bench.plugin(GPU, { a: { nodes: [0, 1] }, b: {}, c: { health: "Unhealthy" } });
  const web = pod("web")
    .init("setup", asks)
    .init("proxy", { ...asks, restartPolicy: "Always" })
    .container("app", asks)
    .build();
  await bench.admit(web);
  const done = pod("done").container("app").build();
  const metrics = new Metrics();
  const gates = { listsActive: true, mayCall: true };
  const answered: number[] = [];
  const { pods: devices, inventory } = bench.plugins;
  const answers = new PodResources({
    activePods: () => [web],
    knownPods: () => [web, done],
    devices,
    inventory,
    compute: {
      cpus: (_uid, container) => (container === "app" ? [2, 3] : []),
      memory: () => [{ type: "memory", bytes: 2 ** 40, nodes: [1] }],
      allocatableCpus: () => [1, 2, 3],
      allocatableMemory: () => [],
    },
    claims: {
      claimsOf: (of, { name }) =>
        name === "app"
          ? [
              {
                name: "c",
                namespace: of.metadata.namespace ?? "",
                devices: [{ cdiDevices: ["v/c=1"], driver: "d", pool: "p", device: "x", requests: [] }],
              },
            ]
          : [],
    },
    listsActive: () => gates.listsActive,
    counted: podResourcesMetrics(metrics),
    rate: { mayCall: () => gates.mayCall, answered: (count) => void answered.push(count) },
  });
  const page = async (): Promise<string> => (await metrics.expose()).body;
  return { bench, plugin, web, answers, answered, gates, page };
}

describe("the pod resources API", () => {
  test("lists a container with 40,000 devices on two nodes without keeping the agent busy", async () => {
    const { answers, bench } = await site();
    const ids = Array.from({ length: 40_000 }, (_, at) => `d${at}`);
    const byNode = new Map([
      [0, ids.slice(0, 20_000)],
      [1, ids.slice(20_000)],
    ]);
    const answer = ContainerAllocateResponse.fromPartial({});
    bench.plugins.pods.set({ uid: "uid-of-web", container: "app", resource: "example.com/many" }, { byNode, answer });
    const cpuMs = countCpu();
    const { podResources } = answers.list();
    // Milliseconds are enough; each compared with all others they took seconds.
    assert.ok(cpuMs() < 1500);
    assert.equal(podResources[0]?.containers.at(-1)?.devices.length, 40_001);
    bench.close();
  });

  test("lists sidecars and containers of active pods with all that they have", async () => {
    const { answers, bench } = await site();
    const { podResources } = answers.list();
    assert.deepEqual(
      podResources.map(({ name, namespace }) => [name, namespace]),
      [["web", "default"]],
    );
    assert.deepEqual(
      podResources[0]?.containers.map(({ name }) => name),
      ["proxy", "app"],
    );
    const [proxy, app] = podResources[0]?.containers ?? [];
    const node = (ID: bigint) => ({ nodes: [{ ID }] });
    assert.deepEqual(proxy?.devices, [
      { resourceName: GPU, deviceIds: ["a"], topology: node(0n) },
      { resourceName: GPU, deviceIds: ["a"], topology: node(1n) },
    ]);
    assert.deepEqual(app?.devices, [{ resourceName: GPU, deviceIds: ["b"], topology: undefined }]);
    assert.deepEqual(app?.cpuIds, [2n, 3n]);
    assert.deepEqual(app?.memory, [{ memoryType: "memory", size: 2n ** 40n, topology: node(1n) }]);
    assert.equal(app?.dynamicResources[0]?.claimResources[0]?.cdiDevices[0]?.name, "v/c=1");
    bench.close();
  });

  test("lists completed pods too with the gate off, and always in v1alpha1, there without topology and sidecars", async () => {
    const { answers, gates, bench } = await site();
    gates.listsActive = false;
    assert.equal(answers.list().podResources.length, 2);
    gates.listsActive = true;
    const [web, done] = answers.listAlpha().podResources;
    assert.equal(done?.name, "done");
    assert.deepEqual(web?.containers, [
      {
        name: "app",
        devices: [{ resourceName: GPU, deviceIds: ["b"], topology: undefined }],
        cpuIds: [],
        memory: [],
        dynamicResources: [],
      },
    ]);
    bench.close();
  });

  test("counts the devices of each answer for its rate limit", async () => {
    const { answers, answered, bench } = await site();
    answers.list();
    answers.listAlpha();
    answers.allocatable();
    answers.get({ podName: "web", podNamespace: "default" });
    assert.deepEqual(answered, [3, 1, 3, 3]);
    bench.close();
  });

  test("has healthy devices allocatable, whether they are allocated or not", async () => {
    const { answers, bench } = await site();
    const { devices, cpuIds } = answers.allocatable();
    assert.deepEqual(
      devices.map(({ deviceIds }) => deviceIds[0]),
      ["a", "a", "b"],
    );
    assert.deepEqual(cpuIds, [1n, 2n, 3n]);
    bench.close();
  });

  test("gets one pod, or says that it is not found, as a completed one; calls are counted and limited", async () => {
    const { answers, gates, page, bench } = await site();
    assert.equal(answers.get({ podName: "web", podNamespace: "default" }).podResources?.containers.length, 2);
    const missing = { podName: "x", podNamespace: "default" };
    assert.throws(() => answers.get(missing), /^Error: pod x in namespace default not found$/);
    const elsewhere = { podName: "web", podNamespace: "other" };
    assert.throws(() => answers.get(elsewhere), /^Error: pod web in namespace other not found$/);
    const completed = { podName: "done", podNamespace: "default" };
    assert.throws(() => answers.get(completed), /^Error: pod done in namespace default not found$/);
    answers.listAlpha();
    gates.mayCall = false;
    const calls = [
      () => answers.list(),
      () => answers.listAlpha(),
      () => answers.allocatable(),
      () => answers.get(missing),
    ];
    for (const call of calls) assert.throws(call, /^TooManyCallsError: rejected by rate limit$/);
    const text = await page();
    assert.match(text, /kubelet_pod_resources_endpoint_requests_get\{server_api_version="v1"\} 4\n/);
    assert.match(text, /kubelet_pod_resources_endpoint_errors_get\{server_api_version="v1"\} 3\n/);
    assert.match(text, /kubelet_pod_resources_endpoint_requests_total\{server_api_version="v1alpha1"\} 1\n/);
    assert.doesNotMatch(text, /requests_list\{/);
    bench.close();
  });
});

describe("a container with devices", () => {
  const contribute = (bench: DeviceBench, of: Pod, annotations = {}) =>
    deviceContributor({
      pods: bench.plugins.pods,
      allocator: bench.allocator,
      plugins: bench.plugins.connections,
      waiting: () => () => undefined,
    }).contribute({ pod: of, container: of.spec.containers[0] as Container, interrupt: signal }, { annotations });

  test("gets what its plugin answered, also while the plugin is gone", async () => {
    const { bench, web, plugin } = await site();
    assert.deepEqual((await contribute(bench, web)).env, [{ name: "A", value: "1" }]);
    plugin.end();
    await bench.clock.advance(0);
    assert.deepEqual((await contribute(bench, web)).env, [{ name: "A", value: "1" }]);
    bench.close();
  });

  test("gets no annotation of its plugin that the agent sets itself", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    plugin.answer = ContainerAllocateResponse.fromPartial({ annotations: { "example.com/card": "a", count: "7" } });
    const web = pod("web").container("app", asks).build();
    await bench.admit(web);
    const { annotations } = await contribute(bench, web, { count: "0" });
    assert.deepEqual(annotations, { "example.com/card": "a" });
    bench.close();
  });

  test("gets its devices late if it was admitted before the plugin registered", async () => {
    const bench = new DeviceBench();
    const early = pod("early").container("app", asks).build();
    assert.deepEqual((await contribute(bench, early)).env, []);
    await bench.plugin(GPU, { a: {} });
    assert.deepEqual((await contribute(bench, early)).env, [{ name: "A", value: "1" }]);
    assert.deepEqual([...bench.plugins.pods.idsOf("uid-of-early", GPU)], ["a"]);
    bench.close();
  });

  test("starts only if a plugin that wants to know it agrees", async () => {
    const { bench, web } = await site();
    const strict = await bench.plugin(GPU, undefined, "strict");
    strict.preStartRequired = true;
    await bench.register(GPU, "strict");
    await contribute(bench, web);
    assert.deepEqual(strict.calls.slice(-1), ["preStart b"]);
    strict.faults.set("preStart", new Error("busy"));
    const refused = "device plugin PreStartContainer rpc failed with err: busy";
    await assert.rejects(contribute(bench, web), new ConfigError(refused));
    strict.end();
    await bench.clock.advance(0);
    await assert.rejects(contribute(bench, web), /unknown Device Plugin example.com\/gpu/);
    bench.close();
  });

  test("starts without asking a plugin that no longer wants to know it", async () => {
    const { bench, web } = await site();
    const plugin = await bench.plugin(GPU, undefined, "strict");
    for (const isStrict of [true, false]) {
      plugin.preStartRequired = isStrict;
      await bench.register(GPU, "strict");
    }
    await contribute(bench, web);
    assert.deepEqual(new Set(plugin.calls), new Set(["options"]));
    bench.close();
  });

  test("of two plugins that set the same the first counts", () => {
    const answer = (value: string) => ({
      envs: { A: value },
      annotations: { a: value },
      mounts: [{ containerPath: "/m", hostPath: `/${value}`, readOnly: true }],
      devices: [{ containerPath: "/dev/d", hostPath: `/dev/${value}`, permissions: "rw" }],
      cdiDevices: [{ name: "v/c=1" }],
    });
    assert.deepEqual(mergeAnswers([answer("one"), answer("two")]), {
      env: [{ name: "A", value: "one" }],
      annotations: { a: "one" },
      mounts: [{ containerPath: "/m", hostPath: "/one", readonly: true, propagation: "private" }],
      devices: [{ containerPath: "/dev/d", hostPath: "/dev/one", permissions: "rw" }],
      cdiDevices: ["v/c=1"],
    });
  });

  test("shows their health: unhealthy if the plugin says so, unknown without it", async () => {
    const { bench, plugin } = await site();
    const health = () => deviceHealth(bench.plugins, "uid-of-web", "app")[0]?.resources?.[0];
    assert.deepEqual(health(), { resourceID: "b", health: "Healthy" });
    plugin.list({ a: { nodes: [0, 1] }, b: { health: "Unhealthy" } });
    await bench.clock.advance(1000);
    assert.equal(health()?.health, "Unhealthy");
    plugin.end();
    await bench.clock.advance(0);
    assert.equal(health()?.health, "Unknown");
    await bench.clock.advance(301_000);
    assert.equal(health()?.health, "Unknown", "also when the plugin is forgotten");
    bench.close();
  });

  test("leaves their health as it was while plugins come back after a start of the agent, and tells if they do not", async () => {
    const { bench } = await site();
    const health = () => deviceHealth(bench.plugins, "uid-of-web", "app")[0]?.resources?.[0];
    bench.restart();
    bench.changes.length = 0;
    assert.deepEqual(health(), { resourceID: "b" });
    await bench.clock.advance(29_999);
    assert.deepEqual([health(), bench.changes], [{ resourceID: "b" }, []]);
    await bench.clock.advance(1);
    assert.deepEqual([health(), bench.changes], [{ resourceID: "b", health: "Unknown" }, [["uid-of-web"]]]);
    bench.restart();
    await bench.plugin(GPU, { b: {} });
    assert.equal(health()?.health, "Healthy");
    bench.changes.length = 0;
    await bench.clock.advance(60_000);
    assert.deepEqual(bench.changes, []);
    bench.close();
  });

  test("tells at once that the health of devices is unknown whose plugin came back and is lost again", async () => {
    const { bench } = await site();
    bench.restart();
    (await bench.plugin(GPU, { b: {} })).end();
    await bench.clock.advance(0);
    assert.equal(deviceHealth(bench.plugins, "uid-of-web", "app")[0]?.resources?.[0]?.health, "Unknown");
    bench.close();
  });
});

test("the drawing of the node shows each device with who has it", async () => {
  const { bench } = await site();
  const report = deviceReport(bench.plugins, (uid) => ({ namespace: "ns", pod: `pod of ${uid}` }));
  const shown = report.map(({ id, nodes, isHealthy, holder }) => [id, nodes, isHealthy, holder?.container]);
  assert.deepEqual(shown, [
    ["a", [0, 1], true, "proxy"],
    ["b", [], true, "app"],
    ["c", [], false, undefined],
  ]);
  assert.deepEqual(report[1]?.holder, {
    uid: "uid-of-web",
    namespace: "ns",
    pod: "pod of uid-of-web",
    container: "app",
  });
  bench.close();
});
