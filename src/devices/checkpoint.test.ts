import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import { decodeCheckpoint, encodeCheckpoint, encodeInParts } from "./checkpoint.ts";

/** Written by the kubelet's own code, with every kind of empty value. */
const EMPTY = `{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}`;
const ORIGINAL =
  `{"Data":{"PodDeviceEntries":[{"PodUID":"pod1","ContainerName":"con1","ResourceName":"example.com/dev",` +
  `"DeviceIDs":{"-1":["x"],"0":["dev1","dev2"],"1":["b"],"10":["c"]},"AllocResp":"CgYKAWESATE="},` +
  `{"PodUID":"pod2","ContainerName":"con\\"2","ResourceName":"example.com/dev","DeviceIDs":{},"AllocResp":""},` +
  `{"PodUID":"pod3","ContainerName":"c","ResourceName":"r","DeviceIDs":null,"AllocResp":null}],` +
  `"RegisteredDevices":{"example.com/a":[],"example.com/b":["dev1"],"é":null}},"Checksum":1604432273}`;

describe("the device checkpoint", () => {
  test("of Kubernetes is read", () => {
    assert.deepEqual(decodeCheckpoint(EMPTY), { entries: [], registered: new Map() });
    const { entries, registered } = decodeCheckpoint(ORIGINAL);
    assert.deepEqual(
      entries.map(({ uid, container, devices }) => [uid, container, [...devices.byNode], devices.answer.envs]),
      [
        [
          "pod1",
          "con1",
          [
            [0, ["dev1", "dev2"]],
            [1, ["b"]],
            [10, ["c"]],
            [-1, ["x"]],
          ],
          { a: "1" },
        ],
        ["pod2", 'con"2', [], {}],
        ["pod3", "c", [], {}],
      ],
    );
    assert.deepEqual(
      [...registered],
      [
        ["example.com/a", []],
        ["example.com/b", ["dev1"]],
        ["é", []],
      ],
    );
  });

  test("is read back as it was written", () => {
    const answer = ContainerAllocateResponse.fromPartial({
      envs: { A: "1" },
      mounts: [{ containerPath: "/m", hostPath: "/h", readOnly: true }],
      devices: [{ containerPath: "/dev/x", hostPath: "/dev/y", permissions: "rw" }],
      annotations: { "a/b": "c" },
      cdiDevices: [{ name: "vendor.com/gpu=0" }],
    });
    const key = { uid: "u", container: "c", resource: "example.com/x" };
    const byNode = new Map([
      [1, ["b"]],
      [-1, ["a"]],
    ]);
    const state = {
      entries: [{ ...key, devices: { byNode, answer } }],
      registered: new Map([["example.com/x", ["a"]]]),
    };
    assert.deepEqual(decodeCheckpoint(encodeCheckpoint(state)), state);
  });

  test("of large answers is encoded in many parts", () => {
    const envs = { A: "x".repeat(16 * 1024) };
    const answer = ContainerAllocateResponse.fromPartial({ envs });
    const entries = Array.from({ length: 250 }, (_, at) => ({
      uid: `pod-${at}`,
      container: "app",
      resource: "example.com/x",
      devices: { byNode: new Map([[0, [`d${at}`]]]), answer },
    }));
    const parts = [...encodeInParts({ entries, registered: new Map() })].length;
    assert.ok(parts > 50, `${parts} parts`);
    const read = decodeCheckpoint(encodeCheckpoint({ entries, registered: new Map() }));
    assert.equal(read.entries.length, 250);
    assert.deepEqual(read.entries[249]?.devices.answer.envs, envs);
  });

  const damaged = [
    { name: "not JSON", text: "{" },
    { name: "another checksum", text: EMPTY.replace("3467439661", "1") },
    { name: "a changed device", text: ORIGINAL.replace('"dev2"', '"dev3"') },
    { name: "another shape", text: `{"Data":{"PodDeviceEntries":{}},"Checksum":0}` },
    { name: "no object", text: "7" },
    { name: "lists that hold numbers", text: EMPTY.replace("{}", '{"a":[1]}') },
  ];
  for (const { name, text } of damaged)
    test(`with ${name} is an error`, () => assert.throws(() => decodeCheckpoint(text)));
});
