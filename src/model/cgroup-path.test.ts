import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ownerOfCgroup } from "./cgroup-path.ts";

const ID = "0123456789abcdef".repeat(4);
const rows: [string, object | undefined][] = [
  [`/kubepods/pod1b-2c/${ID}`, { podUid: "1b-2c", containerId: ID }],
  [`/agents/kubepods/burstable/pod1b-2c/${ID}`, { podUid: "1b-2c", containerId: ID }],
  [`/kubepods/besteffort/pod1b-2c/${ID}/inner/more`, { podUid: "1b-2c", containerId: ID }],
  [
    `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b_2c.slice/cri-containerd-${ID}.scope`,
    { podUid: "1b-2c", containerId: ID },
  ],
  [`/kubepods.slice/kubepods-pod1b_2c.slice/crio-${ID}.scope/container`, { podUid: "1b-2c", containerId: ID }],
  ["/kubepods/pod1b-2c", undefined],
  [`/system.slice/docker-${ID}.scope`, undefined],
  ["/", undefined],
  ["", undefined],
];

describe("the container of a cgroup", () => {
  for (const [path, want] of rows) {
    test(`"${path.replaceAll(ID, "ID")}" is ${want === undefined ? "none" : "found"}`, () => {
      assert.deepEqual(ownerOfCgroup(path), want);
    });
  }
});
