import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CgroupTree } from "../adapters/cgroup/tree.ts";
import { CgroupUsageReader } from "../adapters/cgroup/usage.ts";
import { LinuxHost } from "../adapters/host/index.ts";
import { readTasks } from "../adapters/host/node-usage.ts";
import { SystemClock } from "../lib/clock.ts";
import { fixed, LiveValue } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { EvictionLoop } from "./eviction-loop.ts";
import { Evictions } from "./evictions.ts";
import type { PressureCondition } from "./signals.ts";
import { thresholdsOf } from "./thresholds.ts";

const MI = 2 ** 20;
/** All pods together may use this much; pods are evicted below the threshold. */
const LIMIT = 400 * MI;
const THRESHOLD = 100 * MI;
/** Takes 200 MB a second until it is ended: half a second after the threshold the kernel would end it. */
const HOG = `const kept = []; setInterval(() => kept.push(Buffer.alloc(4_000_000, 1)), 20);`;

const clock = new SystemClock();
const host = new LinuxHost({ clock });

test("a process that takes 200 MB a second is told to stop before the kernel ends it", {
  skip: process.getuid?.() !== 0 && "needs root",
  timeout: 60_000,
}, async (t) => {
  const all = `/kubelet-test-${process.pid}`;
  const path = `${all}/pod`;
  const tree = new CgroupTree(host.cgroupMounts());
  try {
    await tree.ensure(path);
  } catch {
    return t.skip("no cgroup hierarchy is writable");
  }
  t.after(() => host.removeCgroup(all));
  await tree.set(all, { memoryLimit: LIMIT });
  const reader = new CgroupUsageReader(host.cgroupMounts());
  const hog = spawn(process.execPath, ["-e", HOG]);
  const ended = once(hog, "exit");
  t.after(() => hog.kill("SIGKILL"));
  for (const { mountpoint, version, controllers } of host.cgroupMounts()) {
    if (version === 1 && !controllers.includes("memory")) continue;
    try {
      writeFileSync(join(mountpoint, path, "cgroup.procs"), String(hog.pid));
    } catch {
      // The unified tree beside version 1 has no controllers.
    }
  }
  const pod: Pod = { metadata: { name: "hog", uid: "hog" }, spec: { containers: [{ name: "c", image: "i" }] } };
  const evictions = new Evictions({
    clock,
    log: silent,
    candidates: () => [pod],
    ending: () => [],
    stop: () => hog.kill("SIGTERM"),
    isFinished: () => hog.exitCode !== null || hog.signalCode !== null,
    discard: async () => undefined,
    event: () => undefined,
    counted: () => undefined,
  });
  const used = (of: string): number => reader.memory(of)?.workingSet ?? 0;
  const loop = new EvictionLoop(
    {
      clock,
      log: silent,
      evictions,
      signals: async () => {
        const tasks = readTasks();
        const podsMemory = { capacity: LIMIT, workingSet: used(all) };
        return { at: clock.now(), podsMemory, ...(tasks && { tasks }) };
      },
      consumption: async () => {
        const memory = used(path);
        return new Map([["hog", { memory, containers: [{ name: "c", memory }], volumes: { bytes: 0, inodes: 0 } }]]);
      },
      reclaim: { deleteAllUnusedContainers: async () => undefined, deleteUnusedImages: async () => undefined },
      evictOverLimits: async () => false,
      event: () => undefined,
      acted: () => undefined,
    },
    fixed({
      thresholds: thresholdsOf({
        evictionHard: { "memory.available": String(THRESHOLD) },
        evictionSoft: {},
        evictionSoftGracePeriod: {},
        evictionMinimumReclaim: {},
        enforceNodeAllocatable: ["pods"],
      }),
      transitionMs: 1000,
      maxPodGraceSeconds: 0,
    }),
    new LiveValue<readonly PressureCondition[]>([]),
  );
  const stop = new AbortController();
  const running = loop.run(stop.signal);
  const [, by] = (await ended) as [number | null, NodeJS.Signals | null];
  await clock.sleep(100);
  stop.abort();
  await running;
  const [eviction, ...others] = evictions.recent;
  assert.equal(by, "SIGTERM", "the kernel was faster");
  assert.deepEqual(others, []);
  const [, left = ""] = /available: (\S+)\. /.exec(eviction?.message ?? "") ?? [];
  t.diagnostic(`evicted at ${left} of ${THRESHOLD / MI}Mi left`);
});
