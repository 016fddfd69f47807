import assert from "node:assert/strict";
import { test } from "node:test";
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

const damaged: readonly (readonly [string, unknown])[] = [
  ["a wrong checksum", { ...ORIGINAL, Checksum: 1 }],
  ["no object", "text"],
  ["data of another type", { Data: 1, Checksum: 1 }],
  ["nothing", undefined],
];
for (const [name, document] of damaged) {
  test(`a checkpoint with ${name} is damaged`, () => assert.equal(decodeClaims(document), undefined));
}

test("an empty list of the original, which is null, is no damage", () => {
  const { Data } = encodeClaims([]);
  assert.deepEqual(decodeClaims(encodeClaims([])), []);
  assert.match(Data, /"ClaimInfoStateList":\[\]/);
});
