import assert from "node:assert/strict";
import { test } from "node:test";
import { removeDeadLinks, removeRemains } from "./remove.ts";

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

test("only log links of pods without logs are removed", async () => {
  const targets: Readonly<Record<string, string | undefined>> = {
    "web_default_app-1.log": "/logs/default_web_u1/app/0.log",
    "web_default_app-2.log": "/logs/default_web_u2/app/0.log",
    "another-runtime.log": "/elsewhere/default_web_u3/app/0.log",
    "no-link.log": undefined,
  };
  const removed: string[] = [];
  await removeDeadLinks({
    files: {
      list: async (path: string) => (path === "/c" ? Object.keys(targets) : ["default_web_u2"]),
      readLink: async (path: string) => targets[path.slice("/c/".length)],
      removeFile: async (path: string) => void removed.push(path),
    },
    node: { paths: { rootDir: "/r", podLogsDir: "/logs", containerLogsDir: "/c" } },
  });
  assert.deepEqual(removed, ["/c/web_default_app-1.log"]);
});
