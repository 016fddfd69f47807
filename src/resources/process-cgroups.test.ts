import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ProcessCgroups, type ProcessHost } from "./process-cgroups.ts";

function scene(given: {
  kubelet?: string;
  system?: string;
  shares?: boolean | undefined;
  refuses?: number;
  late?: number;
}) {
  const moved: string[] = [];
  const warnings: string[] = [];
  const root = new Set([7, 8]);
  const state = { lists: 0, refuses: given.refuses };
  const host: ProcessHost = {
    ownPid: 99,
    sharesInitNamespace: () => ("shares" in given ? given.shares : true),
    isIn: (pid, path) => moved.includes(`${pid} ${path}`),
    move: (pid, path) => {
      if (pid === state.refuses) throw new Error("EINVAL: write");
      root.delete(pid);
      moved.push(`${pid} ${path}`);
    },
    rootProcesses: () => {
      state.lists++;
      // One that another one started before it was moved.
      if (given.late !== undefined && state.lists === 2) root.add(given.late);
      return [...root];
    },
  };
  const log = {
    info: () => undefined,
    warn: (_: string, fields?: object) => void warnings.push(JSON.stringify(fields)),
  };
  const cgroups = new ProcessCgroups(
    { host, log },
    { kubeletCgroups: given.kubelet ?? "", systemCgroups: given.system ?? "" },
  );
  return { cgroups, moved, warnings, root, state };
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
      assert.match(warnings[0] ?? "", shares === false ? /runs in a container/ : /read PID namespace of init/);
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

  test("those that appear meanwhile move with the others", async () => {
    const { cgroups, moved } = scene({ system: "/system", late: 9 });
    await cgroups.refresh();
    assert.deepEqual(moved, ["7 /system", "8 /system", "9 /system"]);
  });

  test("one that the kernel refuses is not tried again and again in one refresh", async () => {
    const { cgroups, state } = scene({ system: "/system", refuses: 7 });
    await cgroups.refresh();
    assert.equal(state.lists, 1);
  });

  test("a problem that comes back after it was over is warned of again", async () => {
    const { cgroups, warnings, root, state } = scene({ system: "/system", refuses: 7 });
    await cgroups.refresh();
    state.refuses = undefined;
    await cgroups.refresh();
    root.add(7);
    state.refuses = 7;
    await cgroups.refresh();
    assert.equal(warnings.length, 2);
  });
});
