// The agent's side of the page with 250 pods, in a process of its own: real cgroups, sampled by the real sampler, served by
// the real listener. Prints the login link; at each line on stdin its CPU time and memory.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { CgroupUsageReader } from "../src/adapters/cgroup/usage.ts";
import { LinuxHost } from "../src/adapters/host/index.ts";
import { readInterfaces, readSwap, readTasks } from "../src/adapters/host/node-usage.ts";
import { listenHttp } from "../src/adapters/net/http-server.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { silent } from "../src/lib/log.ts";
import { FilesystemSampler } from "../src/stats/filesystems.ts";
import { Sampler } from "../src/stats/sampler.ts";
import { usageReport } from "../src/stats/usage-report.ts";
import { FakePage } from "../test/support/fake-page.ts";

const PODS = 250;
const ROOT = "/kubelet-bench-page";
const clock = new SystemClock();
const host = new LinuxHost({ clock });
const mounts = host.cgroupMounts();
const names = Array.from({ length: PODS }, (_, index) => String(index));
const controllers = mounts.filter(({ version, controllers: of }) => version === 2 || of.length > 0);
for (const { mountpoint } of controllers) {
  for (const name of names) {
    for (const id of ["sandbox", "main"]) {
      mkdirSync(join(mountpoint, ROOT, name, `${id}${name}`), { recursive: true });
    }
  }
}
const reader = new CgroupUsageReader(mounts);
const filesystems = new FilesystemSampler(
  { clock, space: async () => undefined, imageFilesystems: () => Promise.reject(new Error("none")) },
  { rootDir: "/" },
);
const sampler = new Sampler(
  {
    clock,
    cgroups: {
      read: (path) => reader.read(path),
      readWithDetails: (path) => ({ usage: reader.read(path), details: undefined }),
      memory: (path) => reader.memory(path),
      childOf: (path, id) => reader.childOf(path, id),
      // The sandboxes have no processes: each reads the network of this one.
      processIn: () => process.pid,
      createdAt: (path) => reader.createdAt(path),
    },
    node: {
      tasks: readTasks,
      swap: readSwap,
      interfaces: readInterfaces,
      withPressure: (usage) => usage,
      filesystems: async () => [],
    },
    filesystems,
    pods: () =>
      names.map((name) => ({
        uid: `uid-${name}`,
        name,
        namespace: "default",
        cgroup: `${ROOT}/${name}`,
        isOwnCgroup: true,
        sandbox: { id: `sandbox${name}`, createdAt: 0, hostNetwork: false, image: "" },
        containers: [{ id: `main${name}`, name: "main", image: "", startedAt: 0 }],
      })),
  },
  {
    memoryBytes: 2 ** 33,
    bootedAt: 0,
    podsCgroup: ROOT,
    classCgroups: [],
    intervalMs: () => 10_000,
    systemCgroups: () => ({}),
  },
);
let samples = 0;
let sampledMs = 0;
const fake = new FakePage({
  pods: PODS,
  parts: {
    usage: async ({ signal }) => {
      const began = performance.now();
      await sampler.sample({ signal });
      samples++;
      sampledMs += performance.now() - began;
      const { node, pods } = sampler;
      if (node === undefined) throw new Error("not sampled");
      return usageReport({
        node,
        pods: pods.values(),
        diskTraffic: undefined,
        cores: 2,
        memoryBytes: 2 ** 33,
      });
    },
  },
});
const listener = await listenHttp(
  { log: silent },
  { address: { host: "127.0.0.1", port: 0, option: "port" }, routes: fake.page.routes(undefined) },
);
process.stdout.write(`${fake.page.link(listener.address)}\n`);
for await (const _line of createInterface({ input: process.stdin })) {
  const { user, system } = process.cpuUsage();
  process.stdout.write(`${JSON.stringify({ cpuMs: (user + system) / 1000, samples, sampledMs })}\n`);
}
await listener.close();
await host.removeCgroup(ROOT).catch(() => undefined);
process.exit(0);
