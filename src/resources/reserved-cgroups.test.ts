import assert from "node:assert/strict";
import { test } from "node:test";
import { silent } from "../lib/log.ts";
import type { CgroupValues } from "../model/pod-cgroup-values.ts";
import { ReservedCgroups, type ReservedRule } from "./reserved-cgroups.ts";

const RULE: ReservedRule = {
  of: "system",
  name: "/system.slice",
  path: "/system.slice",
  isCompressible: false,
  values: { cpuShares: 512, memoryLimit: 1000 },
};

function scene() {
  const values = new Map<string, CgroupValues>([["/system.slice", {}]]);
  const events: string[] = [];
  const writes: string[] = [];
  let rules: readonly ReservedRule[] = [RULE];
  let used = 0;
  let refused: readonly string[] = [];
  const cgroups = new ReservedCgroups(
    {
      log: silent,
      event: (_type, reason, message) => void events.push(`${reason} ${message}`),
      tree: {
        exists: (path) => values.has(path),
        read: (path) => values.get(path),
        unreclaimable: () => used,
        set: async (path, given) => {
          writes.push(path);
          if (refused.length === 0) values.set(path, { ...values.get(path), ...given });
          return refused;
        },
      },
    },
    () => rules,
  );
  return {
    cgroups,
    values,
    events,
    writes,
    enforce: (next: readonly ReservedRule[]) => {
      rules = next;
    },
    refuse: (problems: readonly string[]) => {
      refused = problems;
    },
    use: (bytes: number) => {
      used = bytes;
    },
  };
}

test("limits are set once, recorded once, and set again when somebody changed them", async () => {
  const { cgroups, values, events, writes } = scene();
  await cgroups.refresh();
  await cgroups.refresh();
  assert.deepEqual(values.get("/system.slice"), RULE.values);
  assert.deepEqual(events, ["NodeAllocatableEnforced Updated limits on system reserved cgroup /system.slice"]);
  assert.equal(writes.length, 1);
  values.set("/system.slice", { ...RULE.values, memoryLimit: -1 });
  await cgroups.refresh();
  assert.deepEqual(values.get("/system.slice"), RULE.values);
});

test("a cgroup that is not there is an event, once, and is limited when it appears", async () => {
  const { cgroups, values, events } = scene();
  values.clear();
  await cgroups.refresh();
  await cgroups.refresh();
  assert.deepEqual(events, [
    'FailedNodeAllocatableEnforcement Failed to enforce System Reserved Cgroup Limits on "/system.slice": cgroup /system.slice does not exist',
  ]);
  values.set("/system.slice", {});
  await cgroups.refresh();
  assert.deepEqual(values.get("/system.slice"), RULE.values);
});

test("a memory limit below what the daemons use is not set, so that none is killed", async () => {
  const { cgroups, values, events, use } = scene();
  use(1001);
  await cgroups.refresh();
  assert.deepEqual(values.get("/system.slice"), { cpuShares: 512 });
  assert.match(events.join(), /memory limit 1000: 1001 bytes are in use/);
  use(10);
  await cgroups.refresh();
  assert.equal(values.get("/system.slice")?.memoryLimit, 1000);
});

test("what the kernel refuses after somebody changed it is tried again", async () => {
  const { cgroups, values, refuse } = scene();
  await cgroups.refresh();
  values.set("/system.slice", { cpuShares: 2 });
  refuse(["cpu.shares: busy"]);
  await cgroups.refresh();
  values.set("/system.slice", RULE.values);
  await cgroups.refresh();
  values.set("/system.slice", { cpuShares: 2 });
  refuse([]);
  await cgroups.refresh();
  assert.deepEqual(values.get("/system.slice"), RULE.values);
});

test("a reservation that is no longer enforced is lifted", async () => {
  const { cgroups, values, enforce } = scene();
  await cgroups.refresh();
  enforce([]);
  await cgroups.refresh();
  assert.deepEqual(values.get("/system.slice"), { cpuShares: 1024, memoryLimit: -1, pids: -1 });
});
