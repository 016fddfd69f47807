import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ProcessCgroups, type ProcessHost } from "./process-cgroups.ts";

function scene(given: { kubelet?: string; system?: string; shares?: boolean | undefined; refuses?: number }) {
  const moved: string[] = [];
  const warnings: string[] = [];
  const root = new Set([7, 8]);
  const host: ProcessHost = {
    ownPid: 99,
    sharesInitNamespace: () => ("shares" in given ? given.shares : true),
    isIn: (pid, path) => moved.includes(`${pid} ${path}`),
    move: (pid, path) => {
      if (pid === given.refuses) throw new Error("EINVAL: write");
      root.delete(pid);
      moved.push(`${pid} ${path}`);
    },
    rootProcesses: () => [...root],
  };
  const log = {
    info: () => undefined,
    warn: (_: string, fields?: object) => void warnings.push(JSON.stringify(fields)),
  };
  const cgroups = new ProcessCgroups(
    { host, log },
    { kubeletCgroups: given.kubelet ?? "", systemCgroups: given.system ?? "" },
  );
  return { cgroups, moved, warnings };
}

describe("processes outside of pods", () => {
  test("stay where they are without a configuration", async () => {
    const { cgroups, moved } = scene({});
    await cgroups.refresh();
    assert.deepEqual(moved, []);
  });

  test("the agent moves itself, once", async () => {
    const { cgroups, moved } = scene({ kubelet: "agents/kubelet" });
    await cgroups.refresh();
    await cgroups.refresh();
    assert.deepEqual(moved, ["99 /agents/kubelet"]);
  });

  for (const shares of [false, undefined]) {
    test(`an agent whose PID namespace is ${shares === false ? "its own" : "not known"} stays, with one warning`, async () => {
      const { cgroups, moved, warnings } = scene({ kubelet: "/kubelet", shares });
      await cgroups.refresh();
      await cgroups.refresh();
      assert.deepEqual([moved, warnings.length], [[], 1]);
    });
  }

  test("all processes of the root cgroup move to the system cgroup", async () => {
    const { cgroups, moved } = scene({ system: "/system" });
    await cgroups.refresh();
    assert.deepEqual(moved, ["7 /system", "8 /system"]);
  });

  test("one that the kernel refuses does not keep the others, and is one warning", async () => {
    const { cgroups, moved, warnings } = scene({ system: "/system", refuses: 7 });
    await cgroups.refresh();
    await cgroups.refresh();
    assert.deepEqual([moved, warnings.length], [["8 /system"], 1]);
  });
});
