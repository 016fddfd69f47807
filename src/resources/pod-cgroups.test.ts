import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { silent } from "../lib/log.ts";
import type { ResourceRequirements } from "../model/generated/types.ts";
import { type CgroupDriver, PodCgroups } from "./index.ts";

const UID = "1b2c-3d";
const full = { cpu: "1", memory: "64Mi" };

const kinds: Readonly<Record<string, ResourceRequirements>> = {
  Guaranteed: { limits: full, requests: full },
  Burstable: { requests: { cpu: "100m" } },
  BestEffort: {},
};

function cgroups(driver: CgroupDriver, root = "/"): { cgroups: PodCgroups; removed: string[]; ended: string[] } {
  const removed: string[] = [];
  const host = { removeCgroup: (path: string) => Promise.resolve(void removed.push(path)) };
  const ended: string[] = [];
  const endProcesses = (path: string): number => ended.push(path);
  return { cgroups: new PodCgroups({ host, endProcesses, log: silent }, { driver, root }), removed, ended };
}

describe("the cgroup of a pod", () => {
  const cases: [CgroupDriver, string, string, string][] = [
    ["cgroupfs", "/", "Guaranteed", "/kubepods/pod1b2c-3d"],
    ["cgroupfs", "/", "Burstable", "/kubepods/burstable/pod1b2c-3d"],
    ["cgroupfs", "/", "BestEffort", "/kubepods/besteffort/pod1b2c-3d"],
    ["systemd", "/", "Guaranteed", "/kubepods.slice/kubepods-pod1b2c_3d.slice"],
    ["systemd", "/", "Burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice"],
    ["systemd", "/", "BestEffort", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1b2c_3d.slice"],
    ["cgroupfs", "", "Burstable", "/kubepods/burstable/pod1b2c-3d"],
    ["cgroupfs", "/agents/one", "Burstable", "/agents/one/kubepods/burstable/pod1b2c-3d"],
    ["cgroupfs", "/agents/one/", "Guaranteed", "/agents/one/kubepods/pod1b2c-3d"],
  ];
  for (const [driver, root, kind, want] of cases) {
    test(`${driver} below "${root}", ${kind}: ${want}`, () => {
      const of = pod("web", UID)
        .container("app", { resources: kinds[kind] ?? {} })
        .build();
      assert.equal(cgroups(driver, root).cgroups.parentOf(of), want);
    });
  }

  test("is removed wherever it may be, because the class of a pod that is gone is not known", async () => {
    const { cgroups: made, removed, ended } = cgroups("cgroupfs", "/agents");
    await made.remove(UID);
    assert.deepEqual(ended, removed, "what still runs in it is killed first");
    assert.deepEqual(removed.sort(), [
      "/agents/kubepods/besteffort/pod1b2c-3d",
      "/agents/kubepods/burstable/pod1b2c-3d",
      "/agents/kubepods/pod1b2c-3d",
    ]);
  });
});
