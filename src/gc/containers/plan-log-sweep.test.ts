import assert from "node:assert/strict";
import { test } from "node:test";
import { deadLinks, orphanedLogs } from "./plan-log-sweep.ts";

test("log directories of pods that are gone are orphaned, those with other names stay", () => {
  const names = ["default_web_u1", "default_web_u2", "kube-system_dns-1_u3", "lost+found", "a_b", "__u4", "a_b_c_d"];
  const known = new Set(["u2"]);
  assert.deepEqual(
    orphanedLogs(names, (uid) => known.has(uid)),
    ["default_web_u1", "kube-system_dns-1_u3"],
  );
});

test("a link without a file is dead unless its container may be alive", () => {
  const links = [
    { name: "web_default_app-gone.log", hasTarget: false },
    { name: "web_default_app-running.log", hasTarget: false },
    { name: "web_default_my-app-there.log", hasTarget: true },
    { name: "cut-off-name.log", hasTarget: false },
  ];
  assert.deepEqual(
    deadLinks(links, (id) => id === "running"),
    ["web_default_app-gone.log", "cut-off-name.log"],
  );
});
