/** What CSI drivers are asked with, and asked again for, on a real API server: secrets, tokens, limits, in-tree kinds. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { CSINode } from "../../src/model/generated/types.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster } from "../support/cluster-site.ts";
import { claimObjects, makeClaim, shell, volumesOf } from "../support/csi-claims.ts";
import { TestCsiDriver } from "../support/csi-driver.ts";

skipWithoutCluster();

const DRIVER = "asked.example.com";
/** The driver that has taken over the disks of Google's cloud. */
const CLOUD = "pd.csi.storage.gke.io";
const STAGES = 1;

describe("what CSI drivers are asked with", () => {
  let site: ClusterSite;
  let driver: TestCsiDriver;
  let cloud: TestCsiDriver;
  before(async () => {
    site = await ClusterSite.start({ controllers: true });
    const { root, dir } = site;
    driver = new TestCsiDriver({ name: DRIVER, root, capabilities: [STAGES], maxVolumes: 7 }, join(dir, "asked"));
    cloud = new TestCsiDriver({ name: CLOUD, root, capabilities: [STAGES] }, join(dir, "cloud"));
    driverObject(DRIVER, {
      attachRequired: false,
      tokenRequests: [{ audience: "vault" }, { audience: "" }],
      nodeAllocatableUpdatePeriodSeconds: 10,
    });
    driverObject(CLOUD, { attachRequired: false });
    await site.join();
    await site.nodeReady();
    await driver.start();
    await until("the driver is on the CSINode", () => driversOf().length === 1);
  });
  after(async () => {
    driver?.stop();
    cloud?.stop();
    await site?.close();
  });

  const driverObject = (name: string, spec: object): void =>
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name }, spec });
  const driversOf = () => site.get<CSINode>("csinode", site.nodeName).spec.drivers ?? [];

  test("the secrets of the volume for each step, and tokens of the pod's account for each audience", async () => {
    const secret = (name: string, stringData: object): object => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name },
      stringData,
    });
    site.create([secret("stage", { key: "of the stage" }), secret("publish", { key: "of the pod" })]);
    const ref = (name: string): object => ({ name, namespace: "default" });
    makeClaim(site, {
      name: "secret",
      driver: DRIVER,
      source: { nodeStageSecretRef: ref("stage"), nodePublishSecretRef: ref("publish") },
    });
    site.apply(site.bound("secret", { ...volumesOf("secret"), containers: [shell("echo")] }));
    await site.podReady("secret");
    const [staged] = driver.asked("NodeStageVolume") as [{ secrets: object }];
    const [published] = driver.asked("NodePublishVolume") as [
      { secrets: object; volumeContext: Readonly<Record<string, string>> },
    ];
    assert.deepEqual([staged.secrets, published.secrets], [{ key: "of the stage" }, { key: "of the pod" }]);
    const tokens = JSON.parse(published.volumeContext["csi.storage.k8s.io/serviceAccount.tokens"] ?? "{}") as Record<
      string,
      { token: string; expirationTimestamp: string }
    >;
    const audiences = Object.entries(tokens).map(([audience, { token }]) => [audience, claimsOf(token).aud]);
    assert.equal(audiences.length, 2);
    assert.deepEqual(audiences.find(([audience]) => audience === "vault")?.[1], ["vault"]);
    const bound = claimsOf(tokens["vault"]?.token ?? "")["kubernetes.io"];
    assert.equal(bound?.pod?.name, "secret");
    await site.removePods("secret");
  });

  test("how many volumes they can attach: once a period, and the CSINode follows", async () => {
    assert.equal(driversOf()[0]?.allocatable?.count, 7);
    driver.maxVolumes = 9;
    await until("the CSINode has the new number", () => driversOf()[0]?.allocatable?.count === 9, { limitMs: 60_000 });
  });

  test("a disk of an in-tree kind: the event names the driver that is missing, and with it the disk works", async () => {
    const [object, claim] = claimObjects({ name: "disk", driver: CLOUD }) as [{ spec: { csi?: object } }, object];
    const { csi: _none, ...spec } = object.spec;
    const gcePersistentDisk = { pdName: "disk-1", fsType: "ext4" };
    site.create([{ ...object, spec: { ...spec, gcePersistentDisk } }, claim]);
    site.apply(site.bound("disk", { ...volumesOf("disk"), containers: [shell("echo kept > /v/file")] }));
    const events = (): string =>
      site.kubectl("get", "events", "--field-selector=involvedObject.name=disk,reason=FailedMount");
    await until("the event names the driver", () => events().includes(CLOUD), { limitMs: 60_000 });
    await cloud.start();
    await site.podReady("disk");
    const handle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk-1";
    const [staged] = cloud.asked("NodeStageVolume") as [{ volumeId: string }];
    assert.equal(staged.volumeId, handle);
    await until("the file", () => existsSync(join(cloud.directory(handle), "file")));
    await site.removePods("disk");
    await until("it is unstaged", () => cloud.asked("NodeUnstageVolume").length === 1);
  });
});

/** What a token says. */
function claimsOf(token: string): { aud: readonly string[]; "kubernetes.io"?: { pod?: { name: string } } } {
  const [, body = ""] = token.split(".");
  return JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
}
