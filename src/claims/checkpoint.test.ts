import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { decodeClaims, encodeClaims } from "./checkpoint.ts";
import type { ClaimRecord } from "./claim-record.ts";

const claim: ClaimRecord = {
  uid: "claim-uid",
  name: "gpu",
  namespace: "default",
  pods: new Set(["pod-b", "pod-a"]),
  drivers: new Map([
    [
      "gpu.example.com",
      [
        {
          driver: "gpu.example.com",
          pool: "node-1",
          device: "gpu-0",
          shareId: "share-1",
          requests: ["first"],
          cdiDevices: ["example.com/gpu=0"],
        },
      ],
    ],
    ["nic.example.com", []],
  ]),
  isPrepared: true,
};

/** Written by Kubernetes v1.36. */
const ORIGINAL = {
  Data: '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[{"ClaimUID":"067798be-454e-4be4-9047-1aa06aea63f7","ClaimName":"example","Namespace":"default","PodUIDs":{"139cdb46-f989-4f17-9561-ca10cfb509a6":{}},"DriverState":{"test-driver.cdi.k8s.io":{"Devices":[{"PoolName":"worker-1","DeviceName":"dev-1","ShareID":null,"RequestNames":["test request"],"CDIDeviceIDs":["example.com/example=cdi-example"]}]}}}]}',
  Checksum: 2570581864,
};

test("what is encoded is decoded, but nothing of it counts as prepared", () => {
  const back = decodeClaims(JSON.parse(JSON.stringify(encodeClaims([claim]))));
  assert.deepEqual(back, [{ ...claim, pods: new Set(["pod-a", "pod-b"]), isPrepared: false }]);
});

test("the format is that of Kubernetes", () => {
  const { Data, Checksum } = encodeClaims([
    {
      uid: "067798be-454e-4be4-9047-1aa06aea63f7",
      name: "example",
      namespace: "default",
      pods: new Set(["139cdb46-f989-4f17-9561-ca10cfb509a6"]),
      drivers: new Map([
        [
          "test-driver.cdi.k8s.io",
          [
            {
              driver: "test-driver.cdi.k8s.io",
              pool: "worker-1",
              device: "dev-1",
              requests: ["test request"],
              cdiDevices: ["example.com/example=cdi-example"],
            },
          ],
        ],
      ]),
      isPrepared: false,
    },
  ]);
  assert.equal(Data, ORIGINAL.Data);
  assert.equal(Checksum, ORIGINAL.Checksum);
});

test("what Kubernetes wrote is decoded", () => {
  const device = {
    driver: "test-driver.cdi.k8s.io",
    pool: "worker-1",
    device: "dev-1",
    requests: ["test request"],
    cdiDevices: ["example.com/example=cdi-example"],
  };
  assert.deepEqual(decodeClaims(ORIGINAL), [
    {
      uid: "067798be-454e-4be4-9047-1aa06aea63f7",
      name: "example",
      namespace: "default",
      pods: new Set(["139cdb46-f989-4f17-9561-ca10cfb509a6"]),
      drivers: new Map([["test-driver.cdi.k8s.io", [device]]]),
      isPrepared: false,
    },
  ]);
});

/** A document of this list, with its checksum. */
function written(list: string): { Data: string; Checksum: number } {
  const Data = `{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":${list}}`;
  return { Data, Checksum: crc32(Data) };
}

const damaged: readonly (readonly [string, unknown])[] = [
  ["a wrong checksum", { ...ORIGINAL, Checksum: 1 }],
  ["no object", "text"],
  ["data of another type", { Data: 1, Checksum: 1 }],
  ["nothing", undefined],
  ["a claim without a name", written('[{"ClaimUID":"u","Namespace":"default"}]')],
  ["a device whose name is a number", written(deviceOf('"PoolName":"p","DeviceName":7'))],
];
function deviceOf(fields: string): string {
  const drivers = `{"gpu.example.com":{"Devices":[{${fields}}]}}`;
  return `[{"ClaimUID":"u","ClaimName":"c","Namespace":"default","PodUIDs":{},"DriverState":${drivers}}]`;
}
for (const [name, document] of damaged) {
  test(`a checkpoint with ${name} is damaged`, () => assert.equal(decodeClaims(document), undefined));
}

function withData(data: object): unknown {
  const Data = JSON.stringify(data);
  return { Data, Checksum: crc32(Data) };
}

const { kind, apiVersion } = JSON.parse(ORIGINAL.Data);
const others: readonly (readonly [string, object])[] = [
  ["a later version", { kind, apiVersion: "checkpoint.dra.kubelet.k8s.io/v2", ClaimInfoStateList: [] }],
  ["another kind", { kind: "DRACheckpointV2", apiVersion, ClaimInfoStateList: [] }],
  ["no version", { ClaimInfoStateList: [] }],
  ["no list of claims", { kind, apiVersion, Claims: [] }],
  ["claims that are no list", { kind, apiVersion, ClaimInfoStateList: {} }],
];
for (const [name, data] of others) {
  test(`a checkpoint with ${name} is not taken for an empty one`, () =>
    assert.equal(decodeClaims(withData(data)), undefined));
}

test("empty lists of the original, which are null, are no damage", () => {
  assert.deepEqual(decodeClaims(written("null")), []);
  const empty = '[{"ClaimUID":"u","ClaimName":"c","Namespace":"default","PodUIDs":null,"DriverState":null}]';
  const claimed = { uid: "u", name: "c", namespace: "default", pods: new Set(), isPrepared: false };
  assert.deepEqual(decodeClaims(written(empty)), [{ ...claimed, drivers: new Map() }]);
  const bare = '"PoolName":"p","DeviceName":"d","ShareID":null,"RequestNames":null,"CDIDeviceIDs":null';
  const device = { driver: "gpu.example.com", pool: "p", device: "d", requests: [], cdiDevices: [] };
  assert.deepEqual(decodeClaims(written(deviceOf(bare))), [
    { ...claimed, drivers: new Map([["gpu.example.com", [device]]]) },
  ]);
});

test("an empty list is written as one", () => {
  const { Data } = encodeClaims([]);
  assert.deepEqual(decodeClaims(encodeClaims([])), []);
  assert.match(Data, /"ClaimInfoStateList":\[\]/);
});
