/** Volumes of a CSI driver on a real API server: registration, attach, stage, publish, and all of it backwards. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import type { CSINode, Pod, VolumeAttachment } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { TestCsiDriver } from "../support/csi-driver.ts";

skipWithoutCluster();

const DISK = "disk.example.com";
const FILES = "files.example.com";
const STAGES = 1;
const MOUNT_GROUP = 6;

describe("CSI volumes of a real cluster", () => {
  let site: ClusterSite;
  let agent: Program;
  let disk: TestCsiDriver;
  let files: TestCsiDriver;
  before(async () => {
    site = await ClusterSite.start({ controllers: true, scheduler: true });
    const { root, dir } = site;
    const topology = { "topology.example.com/zone": "a" };
    disk = new TestCsiDriver({ name: DISK, root, capabilities: [STAGES], topology, maxVolumes: 7 }, join(dir, "disks"));
    files = new TestCsiDriver({ name: FILES, root, capabilities: [MOUNT_GROUP] }, join(dir, "files"));
    driverObject(DISK, { fsGroupPolicy: "File", podInfoOnMount: true });
    driverObject(FILES, { attachRequired: false, volumeLifecycleModes: ["Persistent", "Ephemeral"] });
    agent = await site.join();
    await site.nodeReady();
    await Promise.all([disk.start(), files.start()]);
    await until("both drivers are on the CSINode", () => driversOf().length === 2);
  });
  after(async () => {
    disk?.stop();
    files?.stop();
    await site?.close();
  });

  const driverObject = (name: string, spec: object): void =>
    site.apply({ apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: { name }, spec });
  const csiNode = (): CSINode => site.get<CSINode>("csinode", site.nodeName);
  const driversOf = () => csiNode().spec.drivers ?? [];
  const volume = (name: string, driver: string, more: object = {}): void => {
    site.apply({
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        persistentVolumeReclaimPolicy: "Retain",
        claimRef: { namespace: "default", name },
        csi: { driver, volumeHandle: `vol-${name}`, volumeAttributes: { size: "small" } },
        ...more,
      },
    });
    const volumeMode = (more as { volumeMode?: string }).volumeMode;
    site.apply({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "",
        volumeName: `pv-${name}`,
        resources: { requests: { storage: "1Gi" } },
        ...(volumeMode !== undefined && { volumeMode }),
      },
    });
  };
  const claims = (name: string): object => ({ volumes: [{ name: "v", persistentVolumeClaim: { claimName: name } }] });
  const attachments = (): readonly VolumeAttachment[] =>
    site.get<{ items: readonly VolumeAttachment[] }>("volumeattachments").items;
  /** Does what the driver's external attacher does. */
  const attach = async (name: string): Promise<void> => {
    let found: VolumeAttachment | undefined;
    await until("the attach controller asks for it", () => {
      found = attachments().find(({ spec }) => spec.source.persistentVolumeName === `pv-${name}`);
      return found !== undefined;
    });
    const patch = JSON.stringify({ status: { attached: true, attachmentMetadata: { device: "/dev/x" } } });
    const id = found?.metadata.name ?? "";
    site.kubectl("patch", "volumeattachment", id, "--subresource=status", "--type=merge", "-p", patch);
  };
  const podDir = (pod: Pod): string => join(site.root, "pods", pod.metadata.uid ?? "none");
  const mounts = (): string => readFileSync("/proc/self/mountinfo", "utf8");
  const inUse = (): readonly string[] => site.node()?.status?.volumesInUse ?? [];
  const stages = (): readonly string[] => {
    const path = join(site.root, "plugins/kubernetes.io/csi", DISK);
    return existsSync(path) ? readdirSync(path) : [];
  };

  test("a driver that registers is on the CSINode with its limit and topology, and on the node", () => {
    const [known] = driversOf().filter(({ name }) => name === DISK);
    assert.deepEqual(known, {
      name: DISK,
      nodeID: "node-of-driver",
      topologyKeys: ["topology.example.com/zone"],
      allocatable: { count: 7 },
    });
    const { labels, annotations } = site.node()?.metadata ?? {};
    assert.equal(labels?.["topology.example.com/zone"], "a");
    assert.deepEqual(JSON.parse(annotations?.["csi.volume.kubernetes.io/nodeid"] ?? ""), {
      [DISK]: "node-of-driver",
      [FILES]: "node-of-driver",
    });
  });

  test("a claim is attached, staged and published in that order, and undone in the other", async () => {
    volume("data", DISK);
    const writer = shell("echo kept > /v/file; trap 'exit 0' TERM; while :; do sleep 1; done");
    site.apply(testPod("writer", { ...claims("data"), containers: [writer], securityContext: { fsGroup: 4242 } }));
    const isInUse = (): boolean => inUse().includes(`kubernetes.io/csi/${DISK}^vol-data`);
    await until("in use before it is attached", isInUse, { limitMs: 60_000 });
    assert.deepEqual(disk.asked("NodeStageVolume"), []);
    await attach("data");
    const pod = await site.podReady("writer");
    const [staged] = disk.asked("NodeStageVolume") as [{ publishContext: object; stagingTargetPath: string }];
    assert.deepEqual(staged.publishContext, { device: "/dev/x" });
    assert.match(
      staged.stagingTargetPath,
      /\/plugins\/kubernetes\.io\/csi\/disk\.example\.com\/[0-9a-f]{64}\/globalmount$/,
    );
    const [published] = disk.asked("NodePublishVolume") as [
      { volumeContext: Record<string, string>; targetPath: string },
    ];
    const directory = join(podDir(pod), "volumes/kubernetes.io~csi/pv-data");
    assert.equal(published.targetPath, join(directory, "mount"));
    assert.equal(published.volumeContext["size"], "small");
    assert.equal(published.volumeContext["csi.storage.k8s.io/pod.name"], "writer");
    const metadata = JSON.parse(readFileSync(join(directory, "vol_data.json"), "utf8")) as Record<string, string>;
    assert.deepEqual([metadata["driverName"], metadata["volumeHandle"]], [DISK, "vol-data"]);
    await until("the file", () => existsSync(join(disk.directory("vol-data"), "file")));
    assert.equal(statSync(disk.directory("vol-data")).gid, 4242);
    await site.removePods("writer");
    await until("nothing is mounted", () => !mounts().includes(podDir(pod)) && stages().length === 0);
    await until("it is no longer in use", () => inUse().length === 0);
    const order = disk.calls.map(({ method }) => method).filter((method) => method.endsWith("Volume"));
    assert.deepEqual(order, ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"]);
    assert.equal(readFileSync(join(disk.directory("vol-data"), "file"), "utf8"), "kept\n");
  });

  test("an agent that is killed between the steps goes on, and a driver that was away is waited for", async () => {
    volume("held", DISK);
    disk.faults.push({ method: "NodePublishVolume", code: status.DEADLINE_EXCEEDED, message: "slow", afterWork: true });
    site.apply(testPod("held", { ...claims("held"), containers: [shell("sleep 3600")] }));
    await attach("held");
    await until("it was published once", () => disk.asked("NodePublishVolume").length >= 1);
    await agent.end("SIGKILL");
    agent = await site.join();
    const pod = await site.podReady("held");
    assert.ok(mounts().includes(podDir(pod)));
    assert.ok(inUse().includes(`kubernetes.io/csi/${DISK}^vol-held`));
    disk.stop();
    await until("the driver is gone from the CSINode", () => driversOf().length === 1);
    site.kubectl("delete", "pod", "held", "--wait=false");
    await until("its end waits for the driver", () =>
      /not found in the list of registered CSI drivers/.test(agent.stderr),
    );
    assert.ok(mounts().includes(podDir(pod)));
    await disk.start();
    await site.podGone("held");
    await until("nothing is mounted", () => !mounts().includes(podDir(pod)) && stages().length === 0);
  });

  test("a volume that the pod itself names lives as long as the pod, and the driver sets its group", async () => {
    const csi = { driver: FILES, volumeAttributes: { kind: "scratch" } };
    site.apply(
      testPod("scratch", {
        volumes: [{ name: "v", csi }],
        containers: [shell("echo here > /v/file; sleep 3600")],
        securityContext: { fsGroup: 1234 },
      }),
    );
    const pod = await site.podReady("scratch");
    const [published] = files.asked("NodePublishVolume") as [
      { volumeId: string; volumeCapability: { mount: { volumeMountGroup: string } } },
    ];
    assert.match(published.volumeId, /^csi-[0-9a-f]{64}$/);
    assert.equal(published.volumeCapability.mount.volumeMountGroup, "1234");
    await until("the file", () => existsSync(join(files.directory(published.volumeId), "file")));
    await site.removePods("scratch");
    await until("nothing is mounted", () => !mounts().includes(podDir(pod)));
    assert.deepEqual(files.asked("NodeStageVolume"), []);
    assert.equal(files.asked("NodeUnpublishVolume").length, 1);
  });

  test("a raw block volume is a device in the container", async () => {
    volume("raw", FILES, { volumeMode: "Block" });
    const main = {
      ...shell("test -b /dev/raw && echo block; sleep 3600"),
      volumeDevices: [{ name: "v", devicePath: "/dev/raw" }],
    };
    const { volumeMounts: _none, ...container } = main as { volumeMounts?: unknown };
    site.apply(testPod("raw", { ...claims("raw"), containers: [container] }));
    const pod = await site.podReady("raw");
    await until("its words", () => site.log(pod).includes("block"));
    await site.removePods("raw");
    await until("nothing is mounted", () => !mounts().includes(podDir(pod)));
  });

  test("what a driver refuses is the pod's event, in the driver's words", async () => {
    files.faults.push({
      method: "NodePublishVolume",
      code: status.INVALID_ARGUMENT,
      message: "no such kind of scratch",
    });
    site.apply(
      testPod("wrong", { volumes: [{ name: "v", csi: { driver: FILES } }], containers: [shell("sleep 3600")] }),
    );
    await site.podReady("wrong");
    const selector = "--field-selector=involvedObject.name=wrong,reason=FailedMount";
    await until("the event", () => site.kubectl("get", "events", selector).includes("no such kind of scratch"));
    await site.removePods("wrong");
  });
});

function shell(script: string): object {
  return {
    name: "main",
    image: TEST_IMAGES.busybox,
    imagePullPolicy: "Never",
    command: ["/bin/sh", "-c", script],
    volumeMounts: [{ name: "v", mountPath: "/v" }],
  };
}
