import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { POD_DIR, VolumeScene } from "../../../test/support/volumes.ts";
import type {
  Container,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
  Pod,
  Volume,
} from "../../model/generated/types.ts";

const claimRef = { kind: "PersistentVolumeClaim", namespace: "default", name: "data" } as const;
const volumeRef = { kind: "PersistentVolume", namespace: "", name: "pv-1" } as const;
const bound: PersistentVolumeClaim = {
  metadata: { name: "data", namespace: "default", uid: "claim-1" },
  spec: { volumeName: "pv-1" },
  status: { phase: "Bound" },
};
const LOCAL = `${POD_DIR}/volumes/kubernetes.io~local-volume/pv-1`;
const STAGED = "/root/plugins/kubernetes.io/local-volume/mounts/pv-1";

function setup(
  spec: PersistentVolumeSpec,
  options: { claim?: PersistentVolumeClaim; readOnly?: boolean; annotations?: Record<string, string> } = {},
): VolumeScene {
  const { claim = bound, readOnly, annotations = {} } = options;
  const volume: Volume = {
    name: "v",
    persistentVolumeClaim: { claimName: "data", ...(readOnly !== undefined && { readOnly }) },
  };
  const scene = new VolumeScene([volume]);
  const metadata = { name: "pv-1", annotations };
  const object: PersistentVolume = { metadata, spec: { claimRef: { uid: "claim-1" }, ...spec } };
  scene.objects.put(claimRef, claim);
  scene.objects.put(volumeRef, object);
  scene.machine.kinds.set("/mnt/disk", "directory");
  scene.machine.kinds.set("/dev/sdx", "blockDevice");
  scene.machine.kinds.set("/run/s", "socket");
  return scene;
}

const here = { required: { nodeSelectorTerms: [{ matchExpressions: [host("here")] }] } };
const elsewhere = { required: { nodeSelectorTerms: [{ matchExpressions: [host("elsewhere")] }] } };

function host(name: string): { key: string; operator: string; values: string[] } {
  return { key: "kubernetes.io/hostname", operator: "In", values: [name] };
}

describe("a claim", () => {
  test("of a hostPath is that path, checked like one", async () => {
    const scene = setup({ hostPath: { path: "/mnt/disk", type: "Directory" } });
    await scene.prepare();
    assert.deepEqual(scene.volumes.source(scene.web, "v"), {
      kind: "path",
      path: "/mnt/disk",
      readonly: false,
      isUsers: true,
    });
    assert.equal(scene.machine.mounts.size, 0);
    assert.match(await setup({ hostPath: { path: "/mnt/disk", type: "File" } }).refusal(), /is not a file/);
  });

  test("of a local directory is mounted under the name of its PersistentVolume, and only unmounted at the end", async () => {
    const scene = setup({ local: { path: "/mnt/disk" }, nodeAffinity: here });
    await scene.prepare();
    await scene.prepare();
    assert.deepEqual([...scene.machine.mounts], [[LOCAL, { type: "bind", source: "/mnt/disk", options: [] }]]);
    assert.deepEqual(scene.volumes.source(scene.web, "v"), { kind: "path", path: LOCAL, readonly: false });
    scene.machine.done.length = 0;
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.deepEqual(
      scene.machine.done.filter((line) => line.endsWith(LOCAL)),
      [`unmount ${LOCAL}`, `removeDir ${LOCAL}`],
    );
    assert.deepEqual(
      [...scene.machine.modes.keys()].filter((path) => path.includes("pv-1")),
      [],
    );
  });

  const devices: [string, { fsType?: string; readOnly?: boolean }, string][] = [
    ["is mounted, and made where there is none", {}, "found, or made"],
    ["is the one that the volume names", { fsType: "xfs" }, "xfs, or made"],
    ["is never made for a reader", { readOnly: true }, "found"],
  ];
  for (const [name, { fsType, readOnly = false }, type] of devices) {
    test(`of a local device: its filesystem ${name}`, async () => {
      const scene = setup({ local: { path: "/dev/sdx", ...(fsType && { fsType }) } }, { readOnly });
      await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, securityContext: { fsGroup: 7 } } });
      const options = readOnly ? ["ro"] : [];
      assert.deepEqual(
        [...scene.machine.mounts],
        [
          [STAGED, { type, source: "/dev/sdx", options }],
          [LOCAL, { type: "bind", source: STAGED, options }],
        ],
      );
      assert.equal(scene.machine.groups.has(LOCAL), !readOnly);
      await scene.volumes.teardown("uid-of-web", scene.never);
      assert.equal(scene.machine.mounts.size, 0);
      assert.equal(scene.machine.modes.has(STAGED), false);
    });
  }

  test("that the pod has read-only is read-only, and gets no group", async () => {
    const scene = setup({ local: { path: "/mnt/disk" } }, { readOnly: true });
    await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, securityContext: { fsGroup: 7 } } });
    assert.equal(scene.volumes.source(scene.web, "v").kind === "path" && scene.machine.groups.size, 0);
  });

  test("of a local directory gets the group", async () => {
    const scene = setup({ local: { path: "/mnt/disk" } });
    await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, securityContext: { fsGroup: 7 } } });
    assert.deepEqual(scene.machine.groups.get(LOCAL), { gid: 7, onlyOnMismatch: false });
  });

  const local = { local: { path: "/mnt/disk" } };
  const refused: [string, PersistentVolumeSpec, PersistentVolumeClaim | undefined, RegExp][] = [
    ["is not bound", local, { ...bound, status: { phase: "Pending" } }, /PVC is not bound/],
    ["is being deleted", local, { ...bound, metadata: { ...bound.metadata, deletionTimestamp: "x" } }, /being deleted/],
    ["has a volume that is missing", local, { ...bound, spec: { volumeName: "pv-2" } }, /"pv-2" not found/],
    ["has a volume of another claim", { ...local, claimRef: { uid: "other" } }, undefined, /bound to another claim/],
    [
      "has a volume that names its claim and no uid",
      { ...local, claimRef: { name: "data" } },
      undefined,
      /another claim/,
    ],
    ["belongs to another node", { ...local, nodeAffinity: elsewhere }, undefined, /no matching NodeSelectorTerms/],
    ["is of a path that does not exist", { local: { path: "/gone" } }, undefined, /\/gone does not exist/],
    ["is a block volume of a directory", { ...local, volumeMode: "Block" }, undefined, /disk is not a block device/],
    ["is of a socket", { local: { path: "/run/s" } }, undefined, /is neither a directory nor a block device/],
    [
      "is a block volume of a hostPath",
      { hostPath: { path: "/dev/sdx" }, volumeMode: "Block" },
      undefined,
      /a hostPath, which cannot have volumeMode Block/,
    ],
    [
      "is of a kind that is no more",
      { glusterfs: { endpoints: "e", path: "/" } },
      undefined,
      /volume "pv-1": glusterfs: this kind of volume was removed from Kubernetes; use a CSI driver/,
    ],
    ["is of an unknown kind", {}, undefined, /volume "pv-1": its source is of a kind that is not supported/],
  ];
  for (const [name, spec, claim, words] of refused) {
    test(`that ${name} keeps the pod waiting`, async () => {
      const scene = setup(spec, claim && { claim });
      assert.match(await scene.refusal(), words);
      assert.equal(scene.machine.mounts.size, 0);
    });
  }

  test("whose volume has no claimRef keeps the pod waiting: any claim could name the volume", async () => {
    const scene = setup(local);
    scene.objects.put(volumeRef, { metadata: { name: "pv-1" }, spec: local });
    assert.match(await scene.refusal(), /volume "pv-1" is not yet bound to the claim: it has no claimRef/);
    assert.equal(scene.machine.mounts.size, 0);
  });

  test("that is being deleted and still protected does not keep containers from a restart", async () => {
    const metadata = { ...bound.metadata, deletionTimestamp: "x", finalizers: ["kubernetes.io/pvc-protection"] };
    const scene = setup(local, { claim: { ...bound, metadata } });
    await scene.prepare();
    assert.ok(scene.machine.mounts.has(LOCAL));
  });

  const gids: [string, string, readonly number[]][] = [
    ["is a group of the pod's processes", "1234", [1234]],
    ["that is not a number is ignored", "staff", []],
  ];
  for (const [name, gid, want] of gids) {
    test(`of a volume with a gid annotation: the gid ${name}`, async () => {
      const scene = setup(local, { annotations: { "pv.beta.kubernetes.io/gid": gid } });
      assert.deepEqual(scene.volumes.groups(scene.web), []);
      await scene.prepare();
      assert.deepEqual(scene.volumes.groups(scene.web), want);
    });
  }

  test("that a pod names twice is mounted once", async () => {
    const scene = setup(local);
    const twice = ["v", "w"].map((name): Volume => ({ name, persistentVolumeClaim: { claimName: "data" } }));
    await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, volumes: twice } });
    assert.deepEqual([...scene.machine.mounts.keys()], [LOCAL]);
  });

  test("that nobody tells about is asked for again every few seconds, also after a long wait", async () => {
    const pending = { ...bound, status: { phase: "Pending" } };
    const scene = setup({ local: { path: "/mnt/disk" } }, { claim: pending });
    const prepared = scene.prepare();
    await scene.clock.advance(60_000);
    // An API server's claims: nobody hears of a change.
    scene.objects.tell = () => undefined;
    scene.objects.put(claimRef, bound);
    await scene.clock.advance(5000);
    await prepared;
    assert.ok(scene.machine.mounts.has(LOCAL));
  });

  test("is waited for and taken when it is bound; later changes of it touch nothing", async () => {
    const scene = setup({ local: { path: "/mnt/disk" } }, { claim: { ...bound, status: { phase: "Pending" } } });
    const prepared = scene.prepare();
    await scene.clock.advance(0);
    scene.objects.put(claimRef, bound);
    await prepared;
    scene.machine.done.length = 0;
    scene.objects.remove(claimRef);
    await scene.clock.advance(1000);
    assert.deepEqual(scene.machine.done, []);
  });
});

describe("a block volume", () => {
  const device = { local: { path: "/dev/sdx" }, volumeMode: "Block", nodeAffinity: here };
  const using = (scene: VolumeScene, fields: Partial<Container>): Pod => ({
    ...scene.web,
    spec: { ...scene.web.spec, containers: [{ name: "app", ...fields }], securityContext: { fsGroup: 7 } },
  });
  const mounts = { volumeMounts: [{ name: "v", mountPath: "/v" }] };
  const devices = { volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] };

  for (const readOnly of [false, true]) {
    test(`is the device itself${readOnly ? ", to read" : ""}: linked and locked, never given to a group`, async () => {
      const scene = setup(device, { readOnly });
      const { machine } = scene;
      await scene.prepare(using(scene, devices));
      const path = `${POD_DIR}/volumeDevices/kubernetes.io~local-volume/pv-1`;
      const bound = "/root/plugins/kubernetes.io~local-volume/volumeDevices/pv-1/uid-of-web";
      assert.deepEqual(scene.volumes.source(scene.web, "v"), { kind: "device", path, readonly: readOnly });
      assert.equal(machine.links.get(path), "/dev/sdx");
      assert.deepEqual([...machine.mounts], [[bound, { type: "bind", source: "/dev/sdx" }]]);
      assert.deepEqual([[...machine.locked], machine.groups.size], [[bound], 0]);
      await scene.newAgent().teardown("uid-of-web", scene.never);
      assert.deepEqual([machine.mounts.size, machine.locked.size, machine.links.size], [0, 0, 0]);
      assert.deepEqual(
        [...machine.modes.keys()].filter((one) => one.includes("pv-1")),
        [],
      );
    });
  }

  test("is not mounted, and a directory is no device", async () => {
    const block = setup(device);
    assert.match(await block.refusal(using(block, mounts)), /volumeMode Block, but is specified in volumeMounts/);
    const plain = setup({ local: { path: "/mnt/disk" } });
    const words = /volumeMode Filesystem, but is specified in volumeDevices/;
    assert.match(await plain.refusal(using(plain, devices)), words);
  });

  test("of another node is never given", async () => {
    assert.match(await setup({ ...device, nodeAffinity: elsewhere }).refusal(), /no matching NodeSelectorTerms/);
  });
});

describe("an ephemeral volume", () => {
  const ephemeral: Volume = { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } };
  const ref = { ...claimRef, name: "web-scratch" };
  const made = (uid: string): PersistentVolumeClaim => ({
    ...bound,
    metadata: {
      name: ref.name,
      namespace: "default",
      uid: "claim-2",
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web", uid, controller: true }],
    },
  });
  const scene = (uid: string): VolumeScene => {
    const found = new VolumeScene([ephemeral]);
    found.objects.put(ref, made(uid));
    const spec = { hostPath: { path: "/mnt/disk" }, claimRef: { uid: "claim-2" } };
    found.objects.put(volumeRef, { metadata: { name: "pv-1" }, spec });
    return found;
  };

  test("is the claim that was made for the pod", async () => {
    const own = scene("uid-of-web");
    await own.prepare();
    const expected = { kind: "path", path: "/mnt/disk", readonly: false, isUsers: true } as const;
    assert.deepEqual(own.volumes.source(own.web, "scratch"), expected);
  });

  test("is never the claim of another", async () => {
    const words = /PVC default\/web-scratch was not created for pod default\/web \(pod is not owner\)/;
    assert.match(await scene("somebody-else").refusal(), words);
  });

  test("waits for the controller", async () => {
    assert.match(await new VolumeScene([ephemeral]).refusal(), /persistentvolumeclaim "web-scratch" not found/);
  });
});

test("an image is the runtime's to mount, always read-only, and needs a reference", async () => {
  const scene = new VolumeScene([{ name: "v", image: { reference: "r:1", pullPolicy: "Always" } }]);
  await scene.prepare();
  assert.deepEqual(scene.volumes.source(scene.web, "v"), { kind: "image", reference: "r:1", pullPolicy: "Always" });
  assert.match(await new VolumeScene([{ name: "v", image: {} }]).refusal(), /image.reference is empty/);
});
