import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene } from "../../../test/support/csi-scene.ts";
import { csiError } from "../../adapters/plugins/csi-error.ts";
import type { CSIDriverSpec, Pod } from "../../model/generated/types.ts";

const modes = { volumeLifecycleModes: ["Ephemeral", "Persistent"] };
const inline = { csi: { driver: CSI_DRIVER } };
const claimed = { persistentVolumeClaim: { claimName: "data" } };

for (const volume of [inline, claimed]) {
  const what = volume === claimed ? "behind a claim" : "of a pod";
  test(`a volume ${what} is published again as its driver wants, also by the next agent`, async () => {
    const scene = await new CsiScene({ driver: { ...modes, requiresRepublish: true } }).register();
    const web = scene.user("web", volume);
    await scene.prepare(web);
    await scene.clock.advance(60_000);
    assert.deepEqual(scene.csi.asked("publish").length, 2);
    assert.equal(scene.csi.asked("stage").length, volume === claimed ? 1 : 0);
    scene.csi.calls.length = 0;
    await scene.restart();
    scene.volumes.wanted([web]);
    await scene.clock.advance(0);
    assert.equal(scene.csi.methods.at(-1), "publish");
    await scene.teardown("web");
  });

  test(`a volume ${what} whose driver does not want that is left alone by the next agent`, async () => {
    const scene = await new CsiScene({ driver: modes }).register();
    const web = scene.user("web", volume);
    await scene.prepare(web);
    scene.csi.calls.length = 0;
    await scene.restart();
    scene.volumes.wanted([web]);
    await scene.clock.advance(120_000);
    assert.deepEqual(scene.csi.methods, []);
  });
}

test("a volume is in use from before it is attached until it is unstaged, and waiting for that is no event", async () => {
  const scene = await new CsiScene({ driver: { attachRequired: true } }).register();
  const name = `kubernetes.io/csi/${CSI_DRIVER}^disk-1`;
  scene.attached.restore([]);
  const prepared = scene.prepare(scene.user("web"));
  await scene.clock.advance(15_000);
  assert.deepEqual(scene.attached.inUse.current, [name]);
  assert.match(scene.next?.why ?? "", /v since .*: Volume has not been added to the list of VolumesInUse/);
  scene.reported.set({ inUse: [name], attached: [] });
  await scene.clock.advance(15_000);
  assert.match(scene.next?.why ?? "", /v since .*: Volume not attached according to node status/);
  assert.deepEqual([scene.csi.methods, scene.events], [[], []]);
  scene.attach({ attached: true, attachmentMetadata: { device: "/dev/x" } });
  scene.reported.set({ inUse: [name], attached: [name] });
  await scene.clock.advance(5000);
  await prepared;
  for (const method of ["stage", "publish"] as const) {
    assert.deepEqual(scene.csi.asked(method)[0]?.["publishContext"], { device: "/dev/x" });
  }
  let atUnstage: unknown;
  scene.csi.onCall = (method) => {
    if (method === "unstage") atUnstage = scene.attached.inUse.current;
  };
  await scene.teardown("web");
  assert.deepEqual([atUnstage, scene.attached.inUse.current], [[name], []]);
});

test("a volume without an attachment is not mounted, although the status of the node has it", async () => {
  const scene = await new CsiScene({ driver: { attachRequired: true } }).register();
  const name = `kubernetes.io/csi/${CSI_DRIVER}^disk-1`;
  scene.reported.set({ inUse: [name], attached: [name] });
  assert.match(await scene.refusal(scene.user("web")), /has no volume attachment/);
  const words =
    /^FailedMount: MountVolume\.WaitForAttach failed for volume "pv-1" : volume disk-1 has no volume attach/;
  assert.match(scene.events[0] ?? "", words);
  assert.deepEqual(scene.csi.methods, []);
});

test("a migrated volume of another zone is refused by the label that its driver gives nodes", async () => {
  const scene = await new CsiScene().register();
  const zones = { key: "topology.kubernetes.io/zone", operator: "In", values: ["a"] };
  const affinity = { required: { nodeSelectorTerms: [{ matchExpressions: [zones] }] } };
  const { csi: _csi, ...spec } = scene.volume.spec;
  scene.volume = { ...scene.volume, spec: { ...spec, gcePersistentDisk: { pdName: "d" }, nodeAffinity: affinity } };
  scene.change({});
  assert.match(await scene.refusal(scene.user("web")), /no matching NodeSelectorTerms/);
  const here = { ...zones, key: "kubernetes.io/hostname", values: ["here"] };
  const labels = { "topology.kubernetes.io/zone": "a" };
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [here] }] } };
  scene.volume = { metadata: { name: "pv-1", labels }, spec: { ...scene.volume.spec, nodeAffinity } };
  scene.change({});
  assert.match(await scene.refusal(scene.user("other")), /no matching NodeSelectorTerms/, "the zone of its label");
});

test("an inline volume of a driver that has none is refused before the driver is asked", async () => {
  const scene = await new CsiScene({ driver: { volumeLifecycleModes: ["Persistent"] } }).register();
  assert.match(await scene.refusal(scene.user("web", inline)), /failed to check volume lifecycle mode/);
  assert.deepEqual(scene.csi.asked("publish"), []);
});

describe("a volume on a node with SELinux", () => {
  const LABEL = "system_u:object_r:container_file_t:s0:c1,c2";
  const options = {
    hasSelinux: true,
    driver: { seLinuxMount: true },
    volume: { accessModes: ["ReadWriteOncePod"], mountOptions: ["noatime"] },
  };
  const labelled = (scene: CsiScene, name: string, level: string): Pod => {
    const made = scene.user(name);
    return { ...made, spec: { ...made.spec, securityContext: { seLinuxOptions: { level } } } };
  };

  test("is staged and published with the pod's label, which is on disk for the next agent", async () => {
    const scene = await new CsiScene(options).register();
    const web = labelled(scene, "web", "s0:c1,c2");
    await scene.prepare(web);
    for (const method of ["stage", "publish"] as const) {
      const [request] = scene.csi.asked(method) as [{ use: { filesystem: { options: readonly string[] } } }];
      assert.deepEqual(request.use.filesystem.options, ["noatime", `context="${LABEL}"`]);
    }
    const texts = [...scene.machine.files].map(([, text]) => JSON.parse(text) as Record<string, string>);
    assert.deepEqual(
      texts.map(({ seLinuxMountContext }) => seLinuxMountContext),
      [LABEL, LABEL],
    );
    assert.deepEqual(scene.volumes.source(web, "v"), {
      kind: "path",
      path: "/root/pods/uid-of-web/volumes/kubernetes.io~csi/pv-1/mount",
      readonly: false,
      isUsers: true,
      relabels: false,
    });
  });

  test("is staged anew for a pod with another label once nobody uses it", async () => {
    const scene = await new CsiScene(options).register();
    await scene.prepare(labelled(scene, "a", "s0:c1,c2"));
    scene.csi.faults.push({ method: "unstage", error: csiError({ code: 14, details: "away" }) });
    await scene.teardown("a");
    await scene.prepare(labelled(scene, "b", "s0:c3,c4"));
    assert.deepEqual(scene.csi.methods.slice(2), ["unpublish", "unstage", "unstage", "stage", "publish"]);
  });

  test("of a driver or an access mode that has no labels is labelled file by file, where files have labels", async () => {
    for (const [driver, accessModes] of [
      [{ seLinuxMount: false }, ["ReadWriteOncePod"]],
      [{ seLinuxMount: true }, ["ReadWriteOnce"]],
    ] as const) {
      const scene = await new CsiScene({ ...options, driver, volume: { accessModes } }).register();
      const web = labelled(scene, "web", "s0:c1,c2");
      const target = "/root/pods/uid-of-web/volumes/kubernetes.io~csi/pv-1/mount";
      scene.machine.mounts.set(target, { type: "ext4", superOptions: ["rw", "seclabel"] });
      await scene.prepare(web);
      const source = scene.volumes.source(web, "v");
      assert.equal(source.kind === "path" && source.relabels, true);
    }
  });

  test("that two pods want with different labels goes to the first, until it is gone", async () => {
    const volume = { accessModes: ["ReadWriteMany"] };
    const scene = await new CsiScene({ ...options, volume, labelsAllModes: true }).register();
    await scene.prepare(labelled(scene, "a", "s0:c1,c2"));
    const words = `conflicting SELinux labels of volume pv-1: "${LABEL}" and "${LABEL.replace("c1,c2", "c3,c4")}"`;
    assert.ok((await scene.refusal(labelled(scene, "b", "s0:c3,c4"))).includes(words));
    const { body } = await scene.metrics.expose();
    assert.match(body, /selinux_volume_context_mismatch_errors_total\{volume_plugin="[^"]*",access_mode="RWX"\} 1/);
    await scene.prepare(labelled(scene, "c", "s0:c1,c2"));
    await scene.teardown("a");
    await scene.teardown("c");
    await scene.prepare(labelled(scene, "b", "s0:c3,c4"));
    assert.equal(scene.csi.methods.at(-1), "publish");
  });
});

describe("a node that has as many volumes as it can", () => {
  const name = `kubernetes.io/csi/${CSI_DRIVER}^disk-1`;
  const full = { attached: false, attachError: { message: "too many", errorCode: 8 } };
  const wait = async (driver: CSIDriverSpec, status = full): Promise<{ scene: CsiScene; error: unknown }> => {
    const scene = await new CsiScene({ driver: { attachRequired: true, ...driver } }).register();
    scene.reported.set({ inUse: [name], attached: [] });
    scene.attach(status);
    const prepared = scene.prepare(scene.user("web")).catch((error: unknown) => error);
    await scene.clock.advance(123_000);
    return { scene, error: await prepared };
  };

  test("rejects a pod whose volume finds no room, if its driver keeps its limit up to date", async () => {
    const { scene, error } = await wait({ nodeAllocatableUpdatePeriodSeconds: 60 });
    assert.match(
      String(error),
      /unmounted volumes=\[v\], unattached volumes=\[v\], failed to process volumes=\[\]: context/,
    );
    const [reason, message] = scene.rejections[0] ?? [];
    assert.equal(reason, "VolumeAttachmentLimitExceeded");
    assert.match(
      message ?? "",
      /^Node has reached its volume attachment limit, rejecting pod\. unmounted volumes=\[v\]/,
    );
    assert.ok(scene.exhausted.length > 0);
  });

  test("has other pods wait", async () => {
    const kept = { nodeAllocatableUpdatePeriodSeconds: 60 };
    const other = { attached: false, attachError: { message: "broken", errorCode: 13 } };
    for (const { scene } of [await wait({}), await wait(kept, other)]) assert.deepEqual(scene.rejections, []);
  });
});

test("operations are measured by plugin and driver, as in Kubernetes", async () => {
  const lines = async (scene: CsiScene, name: string): Promise<string[]> => {
    const { body } = await scene.metrics.expose();
    return body
      .split("\n")
      .filter((line) => line.startsWith(name))
      .sort();
  };
  const line = (operation: string, migrated = "false"): string =>
    `storage_operation_duration_seconds_count{volume_plugin="kubernetes.io/csi:${CSI_DRIVER}",operation_name="${operation}",status="success",migrated="${migrated}"} 1`;
  for (const [volumeMode, names] of [
    ["Filesystem", ["unmount_device", "volume_mount", "volume_unmount"]],
    ["Block", ["map_volume", "unmap_device", "unmap_volume"]],
  ] as const) {
    const scene = await new CsiScene({ volume: { volumeMode } }).register();
    await scene.prepare(scene.user("web"));
    await scene.teardown("web");
    assert.deepEqual(
      await lines(scene, "storage_operation_duration_seconds_count"),
      names.map((name) => line(name)),
    );
    assert.deepEqual(await lines(scene, "volume_operation_total_seconds_count"), [
      `volume_operation_total_seconds_count{plugin_name="kubernetes.io/csi:${CSI_DRIVER}",operation_name="overall_volume_mount"} 1`,
    ]);
  }
});

for (const [diskURI, name] of [
  ["/subscriptions/s/disks/d", "~subscriptions~s~disks~d"],
  // A pod must not choose the directory of another volume, nor one above.
  ["..", "v"],
  [".", "v"],
] as const) {
  test(`a disk that a pod names by an in-tree kind, ${diskURI}, lies in its own directory, as in Kubernetes`, async () => {
    const scene = await new CsiScene().register();
    const plugin = { name: "disk.csi.azure.com", endpoint: "/e", socket: "/azure", versions: ["1.0.0"] };
    await scene.drivers.register(plugin, { signal: scene.agentSignal });
    const ref = { kind: "CSIDriver", namespace: "", name: plugin.name } as const;
    scene.objects.put(ref, { metadata: { name: plugin.name }, spec: { attachRequired: false } });
    await scene.prepare(scene.user("web", { azureDisk: { diskName: "d", diskURI, kind: "Managed" } }));
    const directory = `/root/pods/uid-of-web/volumes/kubernetes.io~csi/${name}`;
    assert.equal(scene.csi.asked("publish")[0]?.["targetPath"], `${directory}/mount`);
    await scene.teardown("web");
    assert.deepEqual(scene.leftovers(), []);
  });
}
