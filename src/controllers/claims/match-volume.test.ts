import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec } from "../../model/generated/types.ts";
import { removableDirectory } from "./local-provisioner.ts";
import { bestVolume, misfitOf } from "./match-volume.ts";

const volume = (name: string, storage: string, spec: Partial<PersistentVolumeSpec> = {}): PersistentVolume => ({
  metadata: { name, labels: { name } },
  spec: { capacity: { storage }, accessModes: ["ReadWriteOnce", "ReadOnlyMany"], storageClassName: "s", ...spec },
  status: { phase: "Available" },
});
const claim: PersistentVolumeClaim = {
  metadata: { namespace: "n", name: "c", uid: "u" },
  spec: { accessModes: ["ReadWriteOnce"], storageClassName: "s", resources: { requests: { storage: "1Gi" } } },
};

const misfits = [
  { name: "exactly as large", volume: volume("v", "1Gi"), want: undefined },
  { name: "too small", volume: volume("v", "1023Mi"), want: "requested PV is too small" },
  {
    name: "another class",
    volume: volume("v", "1Gi", { storageClassName: "t" }),
    want: "storageClassName does not match",
  },
  { name: "a device", volume: volume("v", "1Gi", { volumeMode: "Block" }), want: "incompatible volumeMode" },
  {
    name: "another mode",
    volume: volume("v", "1Gi", { accessModes: ["ReadOnlyMany"] }),
    want: "incompatible accessMode",
  },
];
for (const { name, volume: given, want } of misfits) {
  test(`a volume that is ${name}`, () => assert.equal(misfitOf(given, claim), want));
}

const reserved = { claimRef: { namespace: "n", name: "c" } };
const choices = [
  {
    name: "the smallest that fits",
    volumes: [volume("big", "9Gi"), volume("mid", "2Gi"), volume("tiny", "1Mi")],
    want: "mid",
  },
  {
    name: "the one that is reserved",
    volumes: [volume("small", "1Gi"), volume("mine", "9Gi", reserved)],
    want: "mine",
  },
  {
    name: "none if the reserved one does not fit",
    volumes: [volume("small", "1Gi"), volume("mine", "1Mi", reserved)],
    want: undefined,
  },
  {
    name: "none of another's",
    volumes: [volume("theirs", "1Gi", { claimRef: { namespace: "n", name: "c", uid: "other" } })],
    want: undefined,
  },
  {
    name: "none that has failed, or is not settled yet",
    volumes: ["Failed", "Released", "Pending"].map((phase) => ({ ...volume(phase, "1Gi"), status: { phase } })),
    want: undefined,
  },
];
for (const { name, volumes, want } of choices) {
  test(`a claim gets ${name}`, () => assert.equal(bestVolume(claim, volumes)?.metadata.name, want));
}

const paths = [
  { name: "pvc-1", path: "/root/pvc-1", isRemovable: true },
  { name: "pvc-1", path: "/root/pvc-2", isRemovable: false },
  { name: "pvc-1", path: "/etc", isRemovable: false },
  { name: "..", path: "/root/..", isRemovable: false },
  { name: "a/b", path: "/root/a/b", isRemovable: false },
  { name: "", path: "/root/", isRemovable: false },
];
for (const { name, path, isRemovable } of paths) {
  test(`directory ${path} of volume ${JSON.stringify(name)} is ${isRemovable ? "" : "not "}removed`, () => {
    const found = removableDirectory({ metadata: { name }, spec: { local: { path } } }, "/root");
    assert.equal("name" in found, isRemovable);
  });
}
