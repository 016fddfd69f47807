import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PersistentVolume, PersistentVolumeSpec, Volume } from "../../model/generated/types.ts";
import { translateInlineVolume, translatePersistentVolume } from "./translation.ts";

const pv = (spec: PersistentVolumeSpec, metadata: PersistentVolume["metadata"] = {}): PersistentVolume => ({
  metadata: { name: "pv-1", ...metadata },
  spec: { accessModes: ["ReadWriteOnce"], ...spec },
});
const source = (object: PersistentVolume | undefined) => object?.spec.csi;

describe("a PersistentVolume of an in-tree kind is one of its CSI driver", () => {
  const cases: [string, PersistentVolume, object][] = [
    [
      "EBS by its bare id",
      pv({ awsElasticBlockStore: { volumeID: "vol-1", fsType: "xfs", partition: 2 } }),
      { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", fsType: "xfs", volumeAttributes: { partition: "2" } },
    ],
    [
      "EBS by its address",
      pv({ awsElasticBlockStore: { volumeID: "aws://eu-1a/vol-1", readOnly: true } }),
      { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", readOnly: true, volumeAttributes: { partition: "0" } },
    ],
    [
      "GCE PD without a zone",
      pv({ gcePersistentDisk: { pdName: "d" } }),
      {
        driver: "pd.csi.storage.gke.io",
        volumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        volumeAttributes: { partition: "" },
      },
    ],
    [
      "GCE PD in a zone",
      pv(
        { gcePersistentDisk: { pdName: "d", partition: 1 } },
        { labels: { "topology.kubernetes.io/zone": "us-a1-b" } },
      ),
      {
        driver: "pd.csi.storage.gke.io",
        volumeHandle: "projects/UNSPECIFIED/zones/us-a1-b/disks/d",
        volumeAttributes: { partition: "1" },
      },
    ],
    [
      "GCE PD in two zones",
      pv(
        { gcePersistentDisk: { pdName: "d" } },
        { labels: { "failure-domain.beta.kubernetes.io/zone": "us-a1-b__us-a1-c" } },
      ),
      {
        driver: "pd.csi.storage.gke.io",
        volumeHandle: "projects/UNSPECIFIED/regions/us-a1/disks/d",
        volumeAttributes: { partition: "" },
      },
    ],
    [
      "Azure disk",
      pv({
        azureDisk: { diskName: "d", diskURI: "/sub/disks/d", fsType: "ext4", cachingMode: "None", kind: "Managed" },
      }),
      {
        driver: "disk.csi.azure.com",
        fsType: "ext4",
        volumeHandle: "/sub/disks/d",
        volumeAttributes: { kind: "Managed", cachingmode: "None", fstype: "ext4" },
      },
    ],
    [
      "Azure file with its claim's namespace and its resource group",
      pv(
        {
          azureFile: { secretName: "azure-storage-account-acc-secret", shareName: "s" },
          claimRef: { namespace: "shop", name: "c" },
        },
        { annotations: { "kubernetes.io/azure-file-resource-group": "rg" } },
      ),
      {
        driver: "file.csi.azure.com",
        volumeHandle: "rg#acc#s#pv-1#shop",
        volumeAttributes: { sharename: "s" },
        nodeStageSecretRef: { name: "azure-storage-account-acc-secret", namespace: "shop" },
      },
    ],
    [
      "Cinder",
      pv({ cinder: { volumeID: "v", fsType: "ext4" } }),
      { driver: "cinder.csi.openstack.org", volumeHandle: "v", fsType: "ext4", volumeAttributes: {} },
    ],
    [
      "Portworx with the secret of its annotations",
      pv(
        { portworxVolume: { volumeID: "v" } },
        { annotations: { "openstorage.io/auth-secret-name": "s", "openstorage.io/auth-secret-namespace": "n" } },
      ),
      {
        driver: "pxd.portworx.com",
        volumeHandle: "v",
        volumeAttributes: {},
        nodeStageSecretRef: { name: "s", namespace: "n" },
        nodePublishSecretRef: { name: "s", namespace: "n" },
        nodeExpandSecretRef: { name: "s", namespace: "n" },
      },
    ],
    [
      "vSphere with its policy",
      pv({ vsphereVolume: { volumePath: "[ds] a.vmdk", storagePolicyName: "gold" } }),
      {
        driver: "csi.vsphere.vmware.com",
        volumeHandle: "[ds] a.vmdk",
        volumeAttributes: { storagepolicyname: "gold" },
      },
    ],
  ];
  for (const [name, object, want] of cases) {
    test(name, () => assert.deepEqual(source(translatePersistentVolume(object)), want));
  }

  test("its in-tree source is gone, and one of no such kind is the same object", () => {
    const translated = translatePersistentVolume(pv({ cinder: { volumeID: "v" } }));
    assert.equal(translated.spec.cinder, undefined);
    const other = pv({ hostPath: { path: "/x" } });
    assert.equal(translatePersistentVolume(other), other);
  });

  const modes: [readonly string[], readonly string[]][] = [
    [["ReadWriteMany"], ["ReadWriteOnce"]],
    [["ReadOnlyMany"], ["ReadOnlyMany"]],
    [["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOnce"]],
    [[], ["ReadWriteOnce"]],
  ];
  for (const [accessModes, want] of modes) {
    test(`the access modes ${accessModes.join(" and ") || "(none)"} of a GCE PD are ${want.join()}`, () => {
      const object = pv({ gcePersistentDisk: { pdName: "d" }, accessModes });
      assert.deepEqual(translatePersistentVolume(object).spec.accessModes, want);
    });
  }

  const refused: [string, PersistentVolume, RegExp][] = [
    ["an EBS volume of no known form", pv({ awsElasticBlockStore: { volumeID: "aws://z/x/y" } }), /invalid format/],
    [
      "an unmanaged Azure disk",
      pv({ azureDisk: { diskName: "d", diskURI: "u", kind: "Dedicated" } }),
      /kind\(Dedicated\)/,
    ],
    ["an Azure share without a namespace", pv({ azureFile: { secretName: "s", shareName: "s" } }), /secret namespace/],
    [
      "a GCE PD in zones of two regions",
      pv({ gcePersistentDisk: { pdName: "d" } }, { labels: { "topology.kubernetes.io/zone": "us-a1-b__us-b1-c" } }),
      /multiple or no regions/,
    ],
    [
      "a GCE PD in zones of which one has no region",
      pv({ gcePersistentDisk: { pdName: "d" } }, { labels: { "topology.kubernetes.io/zone": "us-a1-b__us-a1" } }),
      /multiple or no regions/,
    ],
  ];
  for (const [name, object, want] of refused) {
    test(`${name} is refused`, () => assert.throws(() => translatePersistentVolume(object), want));
  }
});

describe("the zone of a PersistentVolume is named by the label of its CSI driver", () => {
  const [zone, region] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];
  const [oldZone, oldRegion] = ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"];
  type Place = readonly (readonly [key: string, ...values: string[]])[];
  const affinity = (...place: Place) => ({
    required: {
      nodeSelectorTerms: [{ matchExpressions: place.map(([key, ...values]) => ({ key, operator: "In", values })) }],
    },
  });
  const gce = { gcePersistentDisk: { pdName: "d" } };
  const vsphere = { vsphereVolume: { volumePath: "p" } };
  const cases: [string, PersistentVolumeSpec, Record<string, string>, Place | undefined][] = [
    ["by the label of now", { ...gce, nodeAffinity: affinity([zone, "a"]) }, {}, [["topology.gke.io/zone", "a"]]],
    [
      "by the label of before, and the region by that of now",
      { ...gce, nodeAffinity: affinity([oldZone, "a", "b"], [oldRegion, "r"], ["disk", "ssd"]) },
      {},
      [
        ["topology.gke.io/zone", "a", "b"],
        [region, "r"],
        ["disk", "ssd"],
      ],
    ],
    ["by a label of the volume", gce, { [oldZone]: "us-a-c__us-a-b" }, [["topology.gke.io/zone", "us-a-b", "us-a-c"]]],
    [
      "beside another label",
      { awsElasticBlockStore: { volumeID: "v" }, nodeAffinity: affinity(["disk", "ssd"]) },
      { [zone]: "a" },
      [
        ["disk", "ssd"],
        ["topology.ebs.csi.aws.com/zone", "a"],
      ],
    ],
    [
      "with its region",
      { ...vsphere, nodeAffinity: affinity([zone, "a"], [region, "r"]) },
      {},
      [
        ["topology.csi.vmware.com/zone", "a"],
        ["topology.csi.vmware.com/region", "r"],
      ],
    ],
    ["not at all where nothing names one", gce, {}, undefined],
    ["not for a driver without zones", { portworxVolume: { volumeID: "v" } }, { [zone]: "a" }, undefined],
  ];
  for (const [name, spec, labels, want] of cases) {
    test(name, () => {
      const { nodeAffinity } = translatePersistentVolume({ metadata: { name: "pv", labels }, spec }).spec;
      assert.deepEqual(nodeAffinity, want && affinity(...want));
    });
  }
});

describe("a volume of a pod of an in-tree kind is a PersistentVolume of its CSI driver", () => {
  const cases: [Volume, string, readonly string[]][] = [
    [{ name: "v", gcePersistentDisk: { pdName: "d", readOnly: true } }, "pd.csi.storage.gke.io-d", ["ReadOnlyMany"]],
    [{ name: "v", portworxVolume: { volumeID: "r", readOnly: true } }, "pxd.portworx.com-r", ["ReadOnlyMany"]],
    [{ name: "v", portworxVolume: { volumeID: "w" } }, "pxd.portworx.com-w", ["ReadWriteOnce"]],
    [{ name: "v", awsElasticBlockStore: { volumeID: "aws:///vol-1" } }, "ebs.csi.aws.com-vol-1", ["ReadWriteOnce"]],
    [{ name: "v", azureFile: { secretName: "x", shareName: "s" } }, "#x#s#v#shop", ["ReadWriteMany"]],
    [{ name: "v", azureDisk: { diskName: "d", diskURI: "/sub/d" } }, "/sub/d", ["ReadWriteOnce"]],
  ];
  for (const [volume, name, accessModes] of cases) {
    test(name, () => {
      const object = translateInlineVolume(volume, "shop");
      assert.deepEqual([object?.metadata.name, object?.spec.accessModes], [name, accessModes]);
    });
  }

  test("and one of another kind is not", () =>
    assert.equal(translateInlineVolume({ name: "v", emptyDir: {} }, ""), undefined));
});
