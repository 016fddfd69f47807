/** Volumes of the mock driver that Kubernetes tests itself with: what it is asked, in which order, and how often. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { CSINode } from "../../src/model/generated/types.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";
import { claimStatus, grow, makeClaim, shell, volumesOf } from "../support/csi-claims.ts";
import { MockCsi, whyNoMockCsi } from "../support/mock-csi.ts";

skipWithoutCluster();
const reason = whyNoMockCsi();
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const DRIVER = "mock.example.com";

describe("the mock driver of Kubernetes", () => {
  let site: ClusterSite;
  let mock: MockCsi;
  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    const { root } = site;
    mkdirSync(join(root, "plugins", DRIVER), { recursive: true });
    mkdirSync(join(root, "plugins_registry"), { recursive: true });
    const spec = { attachRequired: false, podInfoOnMount: true, volumeLifecycleModes: ["Persistent", "Ephemeral"] };
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name: DRIVER }, spec });
    const grows = { provisioner: DRIVER, allowVolumeExpansion: true };
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name: "grows" }, ...grows });
    const flags = ["--feature-gates=CSIVolumeHealth=true", `--client-ca-file=${join(site.plane.dir, "pki/ca.crt")}`];
    await site.join([site.config({ syncFrequency: "2s", volumeStatsAggPeriod: "1s" }), ...flags]);
    await site.nodeReady();
    mock = MockCsi.start(DRIVER, root, ["-expand", "-condition", "-limit=5"]);
    await until("it is on the CSINode", () => driver() !== undefined);
  });
  after(async () => {
    await mock?.stop();
    await site?.close();
  });
  const driver = () => site.get<CSINode>("csinode", site.nodeName).spec.drivers?.find(({ name }) => name === DRIVER);

  test("registers with its limit", () => assert.deepEqual(driver()?.allocatable, { count: 5 }));

  test("is asked to stage, publish, unpublish and unstage, each once, with what the pod is", async () => {
    makeClaim(site, { name: "one", driver: DRIVER, source: { volumeHandle: "1", volumeAttributes: { a: "b" } } });
    site.apply(site.bound("one", { ...volumesOf("one"), containers: [shell("touch /v/here")] }));
    const pod = await site.podReady("one");
    const target = join(site.root, "pods", pod.metadata.uid ?? "", "volumes/kubernetes.io~csi/pv-one/mount");
    await until("the file", () => existsSync(join(target, "here")));
    await site.removePods("one");
    await until("the driver's last word", () =>
      mock.calls().some(({ method, volume }) => volume === "1" && method.endsWith("/NodeUnstageVolume")),
    );
    const node = mock.calls().filter(({ method, volume }) => volume === "1" && !method.endsWith("Stats"));
    const names = node.map(({ method }) => method.replace("/csi.v1.Node/", ""));
    assert.deepEqual(names, ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]);
    const { request } = node[1] as { request: { volume_context: Record<string, string> } };
    assert.deepEqual(request.volume_context, {
      a: "b",
      "csi.storage.k8s.io/ephemeral": "false",
      "csi.storage.k8s.io/pod.name": "one",
      "csi.storage.k8s.io/pod.namespace": "default",
      "csi.storage.k8s.io/pod.uid": pod.metadata.uid,
      "csi.storage.k8s.io/serviceAccount.name": "default",
    });
    assert.equal(existsSync(target), false);
  });

  test("publishes a volume that a pod names itself, and is not asked to stage it", async () => {
    site.apply(
      site.bound("inline", { volumes: [{ name: "v", csi: { driver: DRIVER } }], containers: [shell("true", {})] }),
    );
    await site.podReady("inline");
    await site.removePods("inline");
    await until("the driver's last word", () =>
      mock.calls().some(({ method, volume }) => volume.startsWith("csi-") && method.endsWith("/NodeUnpublishVolume")),
    );
    const own = mock.calls().filter(({ volume }) => volume.startsWith("csi-"));
    const names = own
      .map(({ method }) => method.replace("/csi.v1.Node/", ""))
      .filter((name) => !name.endsWith("Stats"));
    assert.deepEqual(names, ["NodePublishVolume", "NodeUnpublishVolume"]);
  });

  test("grows a volume in use; its health and its size are shown", async () => {
    makeClaim(site, { name: "two", driver: DRIVER, storageClass: "grows", source: { volumeHandle: "2" } });
    site.apply(site.bound("two", { ...volumesOf("two"), containers: [shell("true")] }));
    await site.podReady("two");
    grow(site, "two", "2Gi");
    await until("the claim has its new size", () => claimStatus(site, "two").capacity?.["storage"] === "2Gi");
    const { request } = (await until("the driver's word", () =>
      mock.calls().find(({ method }) => method.endsWith("/NodeExpandVolume")),
    )) as { request: { capacity_range: object } };
    assert.deepEqual(request.capacity_range, { required_bytes: 2 * 2 ** 30 });
    const proxy = `/api/v1/nodes/${site.nodeName}/proxy`;
    const labels = 'namespace="default",persistentvolumeclaim="two"';
    await until("its health is a metric", () =>
      site
        .kubectl("get", "--raw", `${proxy}/metrics`)
        .includes(`kubelet_volume_stats_health_status_abnormal{${labels}} 0`),
    );
    await site.removePods("two");
  });

  test("a driver that knows a volume no more is quoted, and its pod is gone when it knows it again", async () => {
    makeClaim(site, { name: "lost", driver: DRIVER, source: { volumeHandle: "99" } });
    site.apply(site.bound("lost", { ...volumesOf("lost"), containers: [shell("true")] }));
    const words = /MountVolume\.MountDevice failed for volume "pv-lost" : rpc error: code = NotFound desc = 99/;
    await until("the event", () =>
      words.test(site.kubectl("get", "events", "--field-selector=involvedObject.name=lost")),
    );
    // It failed for certain: the mock, which would refuse that too, is not asked to undo it.
    await site.removePods("lost");
    const methods = mock
      .calls()
      .filter(({ volume }) => volume === "99")
      .map(({ method }) => method);
    assert.deepEqual(new Set(methods), new Set(["/csi.v1.Node/NodeStageVolume"]));
  });

  test("calls are counted by Kubernetes' metric", () => {
    const page = site.kubectl("get", "--raw", `/api/v1/nodes/${site.nodeName}/proxy/metrics`);
    const of = (method: string, code: string): string =>
      `csi_operations_seconds_count{driver_name="${DRIVER}",method_name="/csi.v1.Node/${method}",grpc_status_code="${code}",migrated="false"}`;
    for (const [method, code] of [
      ["NodePublishVolume", "OK"],
      ["NodeExpandVolume", "OK"],
      ["NodeStageVolume", "NotFound"],
    ] as const) {
      assert.ok(page.includes(of(method, code)), of(method, code));
    }
  });

  test("no call of a kind was ever in flight twice for a volume", () => {
    assert.deepEqual(
      mock.calls().filter(({ inFlight, volume }) => volume !== "" && inFlight > 1),
      [],
    );
  });
});
