import { ownValue } from "../../lib/own-value.ts";
import type {
  CSIPersistentVolumeSource,
  PersistentVolume,
  PersistentVolumeSpec,
  Volume,
} from "../../model/generated/types.ts";
import { type DriverLabels, translateAffinity } from "./translate-affinity.ts";

/** The name of the CSI driver that has taken over each in-tree kind of volume, by its field. */
export const MIGRATED_DRIVERS = {
  awsElasticBlockStore: "ebs.csi.aws.com",
  azureDisk: "disk.csi.azure.com",
  azureFile: "file.csi.azure.com",
  cinder: "cinder.csi.openstack.org",
  gcePersistentDisk: "pd.csi.storage.gke.io",
  portworxVolume: "pxd.portworx.com",
  vsphereVolume: "csi.vsphere.vmware.com",
} as const;

/** The labels that drivers give nodes instead of those that the in-tree kind used. */
const DRIVER_LABELS: Readonly<Record<string, DriverLabels>> = {
  awsElasticBlockStore: { zone: "topology.ebs.csi.aws.com/zone" },
  cinder: { zone: "topology.cinder.csi.openstack.org/zone" },
  gcePersistentDisk: { zone: "topology.gke.io/zone" },
  vsphereVolume: { zone: "topology.csi.vmware.com/zone", region: "topology.csi.vmware.com/region" },
};

type Field = keyof typeof MIGRATED_DRIVERS;
const FIELDS = Object.keys(MIGRATED_DRIVERS) as Field[]; // reason: the keys of the table above

/** What a source becomes: the CSI source, and what of the volume's spec it changes. */
interface Translated {
  readonly csi: CSIPersistentVolumeSource;
  /** The name of a volume that a pod names itself: one for each disk, as it names the stage. */
  readonly name: string;
  readonly accessModes: readonly string[];
}

/** Where a source comes from: what is needed of the object around it. */
interface Around {
  readonly volumeName: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly isInline: boolean;
}

type Source<F extends Field> = NonNullable<PersistentVolumeSpec[F]>;
type Translators = { readonly [F in Field]: (source: Source<F>, around: Around) => Translated };

/** The zone of a disk, by the label of now or of before; several are separated by this. */
const ZONE_LABELS = ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"];
const ZONE_SEPARATOR = "__";

const TRANSLATORS: Translators = {
  awsElasticBlockStore: ({ volumeID, readOnly, fsType, partition }) => {
    const volumeHandle = awsVolume(volumeID);
    return named("awsElasticBlockStore", volumeHandle, {
      ...mounted({ readOnly, fsType }),
      volumeHandle,
      volumeAttributes: { partition: String(partition ?? 0) },
    });
  },

  azureDisk: ({ diskURI, kind, readOnly, fsType, cachingMode }) => {
    if (kind !== undefined && kind.toLowerCase() !== "managed") {
      throw new Error(`azureDisk: kind(${kind}) is not supported in csi migration`);
    }
    const volumeAttributes = {
      kind: "Managed",
      ...(cachingMode && { cachingmode: cachingMode }),
      ...(fsType !== undefined && { fstype: fsType }),
    };
    return {
      csi: {
        driver: MIGRATED_DRIVERS.azureDisk,
        ...mounted({ readOnly, fsType }),
        volumeHandle: diskURI,
        volumeAttributes,
      },
      name: diskURI,
      accessModes: ["ReadWriteOnce"],
    };
  },

  azureFile: (source, around) => {
    const { secretName, shareName, readOnly } = source;
    const account = /azure-storage-account-(.+)-secret/.exec(secretName)?.[1] ?? secretName;
    const namespace = source.secretNamespace ?? (around.namespace || (around.isInline ? "default" : ""));
    if (namespace === "") throw new Error("azureFile: could not find a secret namespace in the volume or its claim");
    const group = around.isInline ? "" : (around.annotations["kubernetes.io/azure-file-resource-group"] ?? "");
    const volumeHandle = [group, account, shareName, around.volumeName, namespace].join("#");
    return {
      csi: {
        driver: MIGRATED_DRIVERS.azureFile,
        ...mounted({ readOnly }),
        volumeHandle,
        volumeAttributes: { sharename: shareName },
        nodeStageSecretRef: { name: secretName, namespace },
      },
      name: volumeHandle,
      accessModes: ["ReadWriteMany"],
    };
  },

  cinder: ({ volumeID, readOnly, fsType }) =>
    named("cinder", volumeID, { ...mounted({ readOnly, fsType }), volumeHandle: volumeID, volumeAttributes: {} }),

  gcePersistentDisk: ({ pdName, readOnly, fsType, partition }, around) => ({
    ...named("gcePersistentDisk", pdName, {
      ...mounted({ readOnly, fsType }),
      volumeHandle: gceHandle(pdName, around),
      volumeAttributes: { partition: partition === undefined || partition === 0 ? "" : String(partition) },
    }),
    accessModes: [readOnly === true ? "ReadOnlyMany" : "ReadWriteOnce"],
  }),

  portworxVolume: ({ volumeID, fsType, readOnly }, { annotations, isInline }) => {
    const name = annotations["openstorage.io/auth-secret-name"];
    const namespace = annotations["openstorage.io/auth-secret-namespace"];
    const hasSecret = !isInline && name !== undefined && namespace !== undefined;
    const secret = hasSecret ? { name, namespace } : undefined;
    return {
      ...named("portworxVolume", volumeID, {
        ...mounted({ fsType }),
        volumeHandle: volumeID,
        volumeAttributes: {},
        ...(secret && { nodeStageSecretRef: secret, nodePublishSecretRef: secret, nodeExpandSecretRef: secret }),
      }),
      accessModes: [readOnly === true ? "ReadOnlyMany" : "ReadWriteOnce"],
    };
  },

  vsphereVolume: ({ volumePath, fsType, storagePolicyName }) =>
    named("vsphereVolume", volumePath, {
      ...mounted({ fsType }),
      volumeHandle: volumePath,
      volumeAttributes: { ...(storagePolicyName && { storagepolicyname: storagePolicyName }) },
    }),
};

/** Returns the in-tree kind of a source that a CSI driver has taken over, if it is one. */
export function migratedField(source: Volume | PersistentVolumeSpec): Field | undefined {
  return FIELDS.find((field) => source[field] !== undefined);
}

/** Returns the PersistentVolume with the source of its CSI driver; the same object if none has taken over. */
export function translatePersistentVolume(object: PersistentVolume): PersistentVolume {
  const field = migratedField(object.spec);
  if (field === undefined) return object;
  const { metadata, spec } = object;
  const { csi } = translate(field, spec, {
    volumeName: metadata.name ?? "",
    namespace: spec.claimRef?.namespace ?? "",
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    isInline: false,
  });
  const { [field]: _replaced, ...rest } = spec;
  const accessModes = field === "gcePersistentDisk" ? gceModes(spec.accessModes) : spec.accessModes;
  const labels = DRIVER_LABELS[field];
  const nodeAffinity = labels && translateAffinity(object, labels);
  return {
    ...object,
    spec: { ...rest, csi, ...(accessModes && { accessModes }), ...(nodeAffinity && { nodeAffinity }) },
  };
}

/** Returns the PersistentVolume that a volume of a pod stands for, with the source of its CSI driver. */
export function translateInlineVolume(volume: Volume, namespace: string): PersistentVolume | undefined {
  const field = migratedField(volume);
  if (field === undefined) return undefined;
  const around = { volumeName: volume.name, namespace, labels: {}, annotations: {}, isInline: true };
  const { csi, name, accessModes } = translate(field, volume, around);
  return { metadata: { name }, spec: { csi, accessModes, volumeMode: "Filesystem" } };
}

function translate(field: Field, holder: Volume | PersistentVolumeSpec, around: Around): Translated {
  const source = holder[field];
  const translator = TRANSLATORS[field] as (source: unknown, around: Around) => Translated; // reason: paired by the field
  return translator(source, around);
}

function named(field: Field, disk: string, source: Omit<CSIPersistentVolumeSource, "driver">): Translated {
  const driver = MIGRATED_DRIVERS[field];
  return { csi: { driver, ...source }, name: `${driver}-${disk}`, accessModes: ["ReadWriteOnce"] };
}

function mounted(of: {
  readonly readOnly?: boolean | undefined;
  readonly fsType?: string | undefined;
}): Pick<CSIPersistentVolumeSource, "readOnly" | "fsType"> {
  return {
    ...(of.readOnly !== undefined && { readOnly: of.readOnly }),
    ...(of.fsType !== undefined && { fsType: of.fsType }),
  };
}

/** `aws://ZONE/vol-1`, `aws:///vol-1` or `vol-1`. */
function awsVolume(id: string): string {
  if (!id.startsWith("aws://")) return id;
  const name = id
    .slice("aws://".length)
    .replace(/^[^/]*/, "")
    .replaceAll(/^\/+|\/+$/g, "");
  if (!/^vol-[^/]*$/.test(name)) throw new Error(`awsElasticBlockStore: invalid format for AWS volume (${id})`);
  return name;
}

function gceHandle(disk: string, { labels, isInline }: Around): string {
  const label = isInline
    ? ""
    : (ZONE_LABELS.map((name) => ownValue(labels, name) ?? "").find((text) => text !== "") ?? "");
  const zones = label.split(ZONE_SEPARATOR).filter((zone) => zone !== "");
  if (zones.length > 1) return `projects/UNSPECIFIED/regions/${gceRegion(zones)}/disks/${disk}`;
  return `projects/UNSPECIFIED/zones/${zones[0] ?? "UNSPECIFIED"}/disks/${disk}`;
}

function gceRegion(zones: readonly string[]): string {
  const regions = new Set(zones.map((zone) => zone.split("-").slice(0, 2).join("-")));
  const [region] = regions;
  if (regions.size === 1 && region !== undefined && zones.every((zone) => zone.split("-").length === 3)) return region;
  throw new Error(`gcePersistentDisk: multiple or no regions gotten from zones, got: ${zones.join(", ")}`);
}

/** The in-tree kind took every combination of modes and wrote from one node; its driver refuses what it cannot keep. */
function gceModes(modes: readonly string[] | undefined): readonly string[] | undefined {
  if (modes === undefined) return undefined;
  const isReadOnly = modes.length > 0 && modes.every((mode) => mode === "ReadOnlyMany");
  return [isReadOnly ? "ReadOnlyMany" : "ReadWriteOnce"];
}
