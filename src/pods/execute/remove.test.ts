import assert from "node:assert/strict";
import { test } from "node:test";
import { removeRemains } from "./remove.ts";

test("cgroups and logs of a pod are found by its UID alone", async () => {
  const removed: string[] = [];
  const logs = ["default_web_u1", "default_web_u2", "default_u1", "kube-system_a-u1_u3", "other_b_u1"];
  await removeRemains(
    {
      cgroups: { remove: async (uid: string) => void removed.push(`cgroup ${uid}`) },
      files: {
        list: async () => logs,
        removeTree: async (path: string) => void removed.push(path),
      },
      node: { paths: { rootDir: "/r", podLogsDir: "/logs", containerLogsDir: "/c" } },
    },
    "u1",
  );
  assert.deepEqual(removed, ["cgroup u1", "/logs/default_web_u1", "/logs/default_u1", "/logs/other_b_u1"]);
});
