import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { type AgentOptions, parseAgentOptions } from "../config/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { Metrics } from "../lib/metrics.ts";
import type { CgroupDriver } from "./cgroup-names.ts";
import { composeResources } from "./compose.ts";

const web = pod("web", "uid1")
  .container("main", { resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "1" } } })
  .build();

/** Resources on a unified hierarchy that is a directory. */
function site(t: TestContext, cgroupDriver: CgroupDriver, more: Partial<AgentOptions> = {}) {
  const root = mkdtempSync(join(tmpdir(), "unified-"));
  t.after(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, "cgroup.controllers"), "cpu memory pids\n");
  const calls: string[][] = [];
  const state = { code: 0, stderr: "" };
  const metrics = new Metrics();
  const { cgroups, limits } = composeResources({
    deps: {
      host: {
        removeCgroup: async () => undefined,
        cgroupMounts: () => [{ version: 2, mountpoint: root, controllers: [] }],
        exec: async (file, args) => {
          calls.push([file, ...args]);
          return state;
        },
      },
      log: silent,
      metrics,
      clock: new FakeClock(),
    },
    settings: { cgroupDriver, machine: { cores: 4, memoryBytes: 2 ** 33 } },
    options: () => ({ ...parseAgentOptions(["--cgroup-root=/"]).values, ...more }),
    hasExclusiveCpus: (_pod, container) => container?.name === "pinned",
  });
  const page = async (): Promise<string> => (await metrics.expose()).body;
  return { root, calls, state, cgroups, limits, page };
}

test("cgroups of files are made without systemd", async (t) => {
  const { root, calls, cgroups } = site(t, "cgroupfs");
  await cgroups.ensure(web);
  assert.deepEqual(calls, []);
  const directory = join(root, "kubepods/burstable/poduid1");
  assert.equal(readFileSync(join(directory, "cpu.max"), "utf8"), "100000 100000");
});

test("cgroups of systemd are units of its own, and its refusal names its words", async (t) => {
  const { root, calls, state, cgroups } = site(t, "systemd");
  await cgroups.ensure(web);
  assert.ok(existsSync(join(root, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poduid1.slice")));
  const units = calls.filter((args) => args.includes("StartTransientUnit")).map((args) => args.join(" "));
  assert.ok(units.some((args) => args.includes("kubepods-burstable-poduid1.slice")));
  assert.ok(calls.every(([file]) => file === "busctl"));
  Object.assign(state, { code: 1, stderr: "Call failed: Access denied\n" });
  const other = pod("other", "uid2").container("main").build();
  await assert.rejects(cgroups.ensure(other), /Access denied/);
  Object.assign(state, { code: 7, stderr: "" });
  await assert.rejects(cgroups.ensure(other), /busctl exited with code 7/);
});

test("memory that is protected is a metric with the gate, by its policy", async (t) => {
  const plain = site(t, "cgroupfs");
  await plain.cgroups.ensure(web);
  assert.doesNotMatch(await plain.page(), /memory_qos/);
  const featureGates = { MemoryQoS: true };
  const unprotected = site(t, "cgroupfs", { featureGates });
  await unprotected.cgroups.ensure(web);
  assert.match(await unprotected.page(), /^kubelet_memory_qos_node_memory_low_bytes 0$/m);
  const tiered = site(t, "cgroupfs", { featureGates, memoryReservationPolicy: "TieredReservation" });
  await tiered.cgroups.ensure(web);
  assert.match(await tiered.page(), /^kubelet_memory_qos_node_memory_low_bytes 67108864$/m);
  assert.match(await tiered.page(), /^kubelet_memory_qos_node_memory_min_bytes 0$/m);
});

test("a container that has CPUs of its own is asked for, and nobody has them by default", async (t) => {
  const { limits } = site(t, "cgroupfs");
  const has = limits().hasExclusiveCpus;
  assert.deepEqual([has?.(web, { name: "pinned" }), has?.(web, { name: "main" }), has?.(web)], [true, false, false]);
});
