import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CsiCapabilities } from "../../adapters/plugins/csi-client.ts";
import type { CSIDriverSpec, PersistentVolumeSpec, Pod, Volume } from "../../model/generated/types.ts";
import type { VolumeOfPod } from "../kind.ts";
import {
  type CsiVolume,
  checkLifecycle,
  csiMetadata,
  csiVolumeOf,
  isExclusive,
  podAttributes,
  stageDirectory,
  stageMetadata,
  takesGroup,
  uniqueName,
  useOf,
} from "./volume.ts";

const POD: Pod = {
  metadata: { name: "web", namespace: "shop", uid: "uid-of-web" },
  spec: { containers: [], serviceAccountName: "seller", securityContext: { fsGroup: 2000 } },
};
const CAN: CsiCapabilities = {
  stages: true,
  mountsWithGroup: false,
  countsWriters: false,
  expands: false,
  hasStats: false,
  hasCondition: false,
};

function inline(csi: NonNullable<Volume["csi"]>): CsiVolume {
  return csiVolumeOf({ pod: POD, volume: { name: "data", csi }, directory: "/d" });
}

function persistent(spec: PersistentVolumeSpec, more: Partial<NonNullable<VolumeOfPod["persistent"]>> = {}): CsiVolume {
  const object = { metadata: { name: "pv-1" }, spec };
  return csiVolumeOf({
    pod: POD,
    volume: { name: "data", persistentVolumeClaim: { claimName: "c" } },
    directory: "/d",
    persistent: { object, isBlock: false, readonly: false, ...more },
  });
}

const PV: PersistentVolumeSpec = {
  accessModes: ["ReadWriteOnce"],
  mountOptions: ["noatime"],
  csi: { driver: "disk.example.com", volumeHandle: "vol-1", fsType: "ext4", volumeAttributes: { a: "b" } },
};

describe("a CSI volume", () => {
  test("of a pod has the handle that Kubernetes makes of the pod's UID and the volume's name", () => {
    const volume = inline({ driver: "disk.example.com", nodePublishSecretRef: { name: "s" } });
    // sha256 of "uid-of-webdata".
    assert.equal(volume.handle, "csi-4d3e2d2d808f0e787fb1f732bc02213d4e17014ef039049d8d4e18da04ead4b5");
    assert.deepEqual(volume.publishSecret, { name: "s", namespace: "shop" });
    assert.equal(volume.lifecycle, "Ephemeral");
  });

  test("is persisted under the names of Kubernetes, and staged where Kubernetes stages it", () => {
    const metadata = csiMetadata(persistent(PV), "node-1");
    assert.deepEqual(metadata, {
      driverName: "disk.example.com",
      volumeHandle: "vol-1",
      specVolID: "pv-1",
      nodeName: "node-1",
      volumeLifecycleMode: "Persistent",
      attachmentID: metadata["attachmentID"],
    });
    assert.match(metadata["attachmentID"] ?? "", /^csi-[0-9a-f]{64}$/);
    assert.match(stageDirectory(metadata) ?? "", /^kubernetes\.io\/csi\/disk\.example\.com\/[0-9a-f]{64}$/);
    assert.equal(uniqueName(metadata), "kubernetes.io/csi/disk.example.com^vol-1");
    assert.deepEqual(stageMetadata(metadata), { driverName: "disk.example.com", volumeHandle: "vol-1" });
  });

  test("that a pod names itself is not staged", () => {
    assert.equal(stageDirectory(csiMetadata(inline({ driver: "disk.example.com" }), "node-1")), undefined);
  });

  for (const [modes, want] of [
    [["ReadWriteOncePod"], true],
    [["ReadWriteOnce"], false],
    [["ReadWriteOncePod", "ReadWriteOnce"], false],
    [[], false],
  ] as const) {
    test(`with the access modes [${modes}] may be used by ${want ? "one pod at a time" : "several pods"}`, () => {
      assert.equal(isExclusive(persistent({ ...PV, accessModes: modes })), want);
    });
  }

  test("says whether it was of an in-tree kind", () => {
    assert.equal(persistent(PV).isMigrated, false);
    assert.equal(persistent({ cinder: { volumeID: "v" } }).isMigrated, true);
  });

  for (const driver of ["../../etc", "a/b", "", ".hidden", "x".repeat(64), "a b"]) {
    test(`of the driver ${JSON.stringify(driver)} is refused: it would be part of a path`, () => {
      assert.throws(() => inline({ driver }), /is not the name of a CSI driver/);
    });
  }
});

describe("how a volume is used", () => {
  const modes: [string | undefined, boolean, string][] = [
    ["ReadWriteOnce", false, "SINGLE_NODE_WRITER"],
    ["ReadWriteOnce", true, "SINGLE_NODE_MULTI_WRITER"],
    ["ReadOnlyMany", true, "MULTI_NODE_READER_ONLY"],
    ["ReadWriteMany", true, "MULTI_NODE_MULTI_WRITER"],
    ["ReadWriteOncePod", false, "SINGLE_NODE_WRITER"],
    ["ReadWriteOncePod", true, "SINGLE_NODE_SINGLE_WRITER"],
    [undefined, false, "SINGLE_NODE_WRITER"],
  ];
  for (const [mode, countsWriters, want] of modes) {
    test(`${mode ?? "no access mode"} is ${want}${countsWriters ? " if writers are counted" : ""}`, () => {
      const volume = persistent({ ...PV, accessModes: mode === undefined ? [] : [mode] });
      assert.equal(useOf(volume, { ...CAN, countsWriters }, POD).mode, want);
    });
  }

  test("a driver that mounts with a group gets the pod's fsGroup, others do not", () => {
    const volume = persistent(PV);
    const filesystem = { type: "ext4", options: ["noatime"] };
    assert.deepEqual(useOf(volume, CAN, POD).filesystem, filesystem);
    assert.deepEqual(useOf(volume, { ...CAN, mountsWithGroup: true }, POD).filesystem, { ...filesystem, group: 2000 });
  });

  test("a block volume has no filesystem", () => {
    assert.equal(useOf(persistent(PV, { isBlock: true }), CAN, POD).filesystem, undefined);
  });
});

describe("the agent gives a volume to the pod's group", () => {
  const cases: [string, boolean, CsiVolume, Partial<CsiCapabilities>, CSIDriverSpec | undefined][] = [
    ["without a policy, with a filesystem and one writer", true, persistent(PV), {}, undefined],
    ["not without a filesystem type", false, inline({ driver: "d" }), {}, undefined],
    ["not for many writers", false, persistent({ ...PV, accessModes: ["ReadWriteMany"] }), {}, undefined],
    [
      "for many writers with the policy File",
      true,
      persistent({ ...PV, accessModes: [] }),
      {},
      { fsGroupPolicy: "File" },
    ],
    ["not with the policy None", false, persistent(PV), {}, { fsGroupPolicy: "None" }],
    ["not if the driver does it", false, persistent(PV), { mountsWithGroup: true }, { fsGroupPolicy: "File" }],
    ["not read-only", false, persistent(PV, { readonly: true }), {}, { fsGroupPolicy: "File" }],
    ["not for a device", false, persistent(PV, { isBlock: true }), {}, { fsGroupPolicy: "File" }],
  ];
  for (const [name, want, volume, capabilities, spec] of cases) {
    test(name, () => {
      const object = spec && { metadata: { name: "d" }, spec };
      assert.equal(takesGroup(volume, { ...CAN, ...capabilities }, object), want);
    });
  }
});

describe("the lifecycle of a volume", () => {
  const object = (modes?: readonly string[]) => ({
    metadata: {},
    spec: modes === undefined ? {} : { volumeLifecycleModes: modes },
  });
  test("persistent needs no CSIDriver object, ephemeral does", () => {
    checkLifecycle(persistent(PV), undefined);
    assert.throws(
      () => checkLifecycle(inline({ driver: "d" }), undefined),
      /^Error: volume mode "Ephemeral" not supported by driver d \(no CSIDriver object\)$/,
    );
  });

  test("must be offered by the driver", () => {
    checkLifecycle(inline({ driver: "d" }), object(["Persistent", "Ephemeral"]));
    checkLifecycle(persistent(PV), object());
    assert.throws(
      () => checkLifecycle(inline({ driver: "d" }), object()),
      /volume mode "Ephemeral" not supported by driver d \(only supports \["Persistent"\]\)/,
    );
  });
});

test("drivers that ask are told about the pod", () => {
  assert.deepEqual(podAttributes(POD, "Ephemeral"), {
    "csi.storage.k8s.io/pod.name": "web",
    "csi.storage.k8s.io/pod.namespace": "shop",
    "csi.storage.k8s.io/pod.uid": "uid-of-web",
    "csi.storage.k8s.io/serviceAccount.name": "seller",
    "csi.storage.k8s.io/ephemeral": "true",
  });
});
