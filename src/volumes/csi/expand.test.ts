import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CsiScene, type CsiSceneOptions } from "../../../test/support/csi-scene.ts";
import { csiError } from "../../adapters/plugins/csi-error.ts";

const GI = 2 ** 30;
const size = (storage: string): { readonly storage: string } => ({ storage });
const requests = { resources: { requests: size("2Gi") } };
/** A claim that grows from 1 to 2 GiB, and has to on the node. */
const growing = {
  capacity: size("1Gi"),
  allocatedResources: size("2Gi"),
  allocatedResourceStatuses: { storage: "NodeResizePending" },
  conditions: [{ type: "FileSystemResizePending", status: "True" }],
};
const refusal = (code: number): Error => csiError({ code, details: "no room" });

async function scene(options: CsiSceneOptions & { readonly volume?: object } = {}): Promise<CsiScene> {
  const made = await new CsiScene({
    ...options,
    volume: { capacity: size("1Gi"), ...options.volume },
    claim: { spec: requests, status: { capacity: size("1Gi") }, ...options.claim },
  }).register();
  made.csi.capabilities = { ...made.csi.capabilities, expands: true };
  return made;
}

/** Long enough for the next look at a claim. */
const LOOK_MS = 90_000;

describe("a volume that was grown before it is mounted", () => {
  const grown = { volume: { capacity: size("2Gi") }, claim: { spec: requests, status: growing } };

  test("is grown on the node before its pod starts, and the claim says each step", async () => {
    const site = await scene(grown);
    await site.prepare(site.user("web"));
    assert.deepEqual(site.csi.methods, ["stage", "publish", "expand"]);
    const [request] = site.csi.asked("expand");
    assert.deepEqual(request, {
      volumeId: "disk-1",
      volumePath: "/root/pods/uid-of-web/volumes/kubernetes.io~csi/pv-1/mount",
      stagingPath: site.csi.asked("stage")[0]?.["stagingPath"],
      bytes: 2 * GI,
      use: { mode: "SINGLE_NODE_WRITER", filesystem: { type: "ext4", options: [] } },
      secrets: {},
    });
    assert.deepEqual(site.patches, [
      { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } },
      {
        capacity: size("2Gi"),
        allocatedResourceStatuses: null,
        conditions: [{ $patch: "delete", type: "FileSystemResizePending" }],
      },
    ]);
    const words = 'MountVolume.NodeExpandVolume succeeded for volume "pv-1" ';
    assert.deepEqual(site.events, [
      `FileSystemResizeSuccessful: ${words}`,
      `FileSystemResizeSuccessful: ${words} (to claim data)`,
    ]);
  });

  test("gets the secret for growing", async () => {
    const source = { driver: "disk.example.com", volumeHandle: "disk-1" };
    const csi = { ...source, nodeExpandSecretRef: { name: "key", namespace: "ns" } };
    const site = await scene({ ...grown, volume: { ...grown.volume, csi } });
    const data = { user: Buffer.from("me").toString("base64") };
    site.objects.put({ kind: "Secret", namespace: "ns", name: "key" }, { metadata: { name: "key" }, data });
    await site.prepare(site.user("web"));
    assert.deepEqual(site.csi.asked("expand")[0]?.["secrets"], { user: "me" });
  });

  test("keeps its pod waiting while it cannot be grown, with the driver's words, and is torn down with it", async () => {
    const site = await scene(grown);
    site.csi.faults.push({ method: "expand", error: refusal(13) });
    await site.refusal(site.user("web"));
    assert.equal(
      site.events[0],
      'FailedMount: MountVolume.Setup failed while expanding volume for volume "pv-1" : Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = no room',
    );
    assert.match(JSON.stringify(site.patches.at(-1)), /"type":"NodeResizeError".*failed to expand pvc with Expander/);
    await site.teardown("web");
    assert.deepEqual(site.csi.methods.slice(3), ["unpublish", "unstage"]);
  });

  test("of a pod that only reads is not grown, and pod and claim are told", async () => {
    const site = await scene(grown);
    await site.prepare(site.user("web", { persistentVolumeClaim: { claimName: "data", readOnly: true } }));
    assert.deepEqual(site.csi.methods, ["stage", "publish"]);
    const words =
      'FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv-1" requested read-only file system';
    assert.deepEqual(site.events, [words, `${words} (to claim data)`]);
  });

  test("of a driver that refuses while it is in use starts all the same, and is not asked again", async () => {
    const site = await scene(grown);
    site.csi.faults.push({ method: "expand", error: refusal(9) });
    await site.prepare(site.user("web"));
    await site.clock.advance(3 * LOOK_MS);
    assert.equal(site.csi.asked("expand").length, 1);
  });
});

describe("a volume that is grown while it is used", () => {
  test("is grown on the node within a minute and a half, however long nothing has changed", async () => {
    const site = await scene();
    await site.prepare(site.user("web"));
    await site.clock.advance(6 * LOOK_MS);
    assert.equal(site.csi.asked("expand").length, 0);
    site.change(growing, { capacity: size("2Gi") });
    await site.clock.advance(LOOK_MS);
    assert.deepEqual(
      site.csi.asked("expand").map(({ bytes }) => bytes),
      [2 * GI],
    );
    assert.deepEqual(site.claim.status?.capacity, size("2Gi"));
    assert.equal(site.claim.status?.allocatedResourceStatuses, undefined);
    await site.clock.advance(3 * LOOK_MS);
    assert.equal(site.csi.asked("expand").length, 1);
  });

  test("is grown also for a pod that an earlier agent started, which the new one leaves alone", async () => {
    const site = await scene();
    const web = site.user("web");
    await site.prepare(web);
    await site.restart();
    site.csi.calls.length = 0;
    site.volumes.wanted([web]);
    await site.clock.advance(0);
    assert.deepEqual(site.volumes.source(web, "v").kind, "path");
    site.change(growing, { capacity: size("2Gi") });
    await site.clock.advance(LOOK_MS);
    assert.deepEqual(site.csi.methods, ["expand"]);
  });

  test("costs one request a look while nothing changes", async () => {
    const site = await scene();
    await site.prepare(site.user("web"));
    await site.clock.advance(LOOK_MS);
    const before = site.objects.reads;
    await site.clock.advance(LOOK_MS);
    assert.ok(site.objects.reads - before <= 2, `${site.objects.reads - before}`);
  });

  // Code, what the claim gets, whether it is tried again soon.
  const failures: [number, RegExp, boolean][] = [
    [13, /^\{"conditions":\[\{"type":"NodeResizeError"/, true],
    [3, /"allocatedResourceStatuses":\{"storage":"NodeResizeInfeasible"\}.*NodeResizeError/, false],
    [11, /NodeResizeInfeasible/, false],
    [5, /NodeResizeInfeasible/, false],
    [4, /^\{"allocatedResourceStatuses":\{"storage":"NodeResizeInProgress"\}\}$/, true],
    [14, /NodeResizeInProgress/, true],
  ];
  for (const [code, want, isRetried] of failures) {
    const { message } = refusal(code);
    test(`and fails with ${message}: ${isRetried ? "tried again" : "left to the controller"}`, async () => {
      const site = await scene();
      await site.prepare(site.user("web"));
      site.change(growing, { capacity: size("2Gi") });
      for (let n = 0; n < 3; n++) site.csi.faults.push({ method: "expand", error: refusal(code) });
      while (site.csi.asked("expand").length === 0) await site.clock.advance(500);
      assert.match(JSON.stringify(site.patches.at(-1)), want);
      const [event = ""] = site.events;
      assert.ok(
        event.startsWith('VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume "pv-1" : Exp'),
      );
      assert.ok(event.endsWith(message), event);
      site.csi.faults.length = 0;
      await site.clock.advance(5000);
      assert.equal(site.csi.asked("expand").length, isRetried ? 2 : 1);
      await site.teardown("web");
      assert.equal(site.clock.waiting, 0);
    });
  }

  test("is not reported as grown while the API server does not take it, and is then", async () => {
    const site = await scene();
    await site.prepare(site.user("web"));
    site.change({ capacity: size("1Gi") }, { capacity: size("2Gi") });
    site.patchFault = new Error("connection refused");
    while (site.csi.asked("expand").length === 0) await site.clock.advance(500);
    assert.match(site.events.at(-1) ?? "", /VolumeResizeFailed: .* : connection refused$/);
    site.patchFault = undefined;
    await site.clock.advance(5000);
    assert.deepEqual(site.claim.status?.capacity, size("2Gi"));
  });

  test("of a driver that does not grow on nodes, with an older controller, is done", async () => {
    const site = await scene();
    site.csi.capabilities = { ...site.csi.capabilities, expands: false };
    await site.prepare(site.user("web"));
    site.change({}, { capacity: size("2Gi") });
    await site.clock.advance(2 * LOOK_MS);
    assert.deepEqual([site.csi.asked("expand").length, site.patches, site.events], [0, [], []]);
  });

  test("as a block device is grown by its device", async () => {
    const site = await scene({ volume: { volumeMode: "Block" } });
    await site.prepare(site.user("web"));
    site.change(growing, { capacity: size("2Gi") });
    await site.clock.advance(LOOK_MS);
    const [request] = site.csi.asked("expand");
    const base = "/root/plugins/kubernetes.io/csi/volumeDevices";
    assert.deepEqual(
      [request?.["volumePath"], request?.["stagingPath"], request?.["use"]],
      [
        `${base}/publish/pv-1/uid-of-web`,
        `${base}/staging/pv-1`,
        { mode: "SINGLE_NODE_WRITER", filesystem: undefined },
      ],
    );
  });
});
