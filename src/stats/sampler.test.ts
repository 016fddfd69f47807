import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import type { CgroupUsage } from "../model/usage.ts";
import { FilesystemSampler } from "./filesystems.ts";
import { type RuntimeUsages, type SampledPod, Sampler } from "./sampler.ts";

const { signal } = new AbortController();
const space = { device: 1, capacityBytes: 100, availableBytes: 50, usedBytes: 50, inodes: 10, inodesFree: 5 };

function usage(usageNanos: number, workingSet: number, limit?: number): CgroupUsage {
  const rest = { rss: 1, pageFaults: 2, majorPageFaults: 3, swap: 0, ...(limit !== undefined && { limit }) };
  return { cpu: { usageNanos }, memory: { usage: workingSet + 10, workingSet, ...rest }, pids: 3 };
}

const packets = { rxPackets: 1, rxDropped: 0, txPackets: 2, txDropped: 0 };
const web: SampledPod = {
  uid: "u1",
  name: "web",
  namespace: "default",
  cgroup: "/pods/podu1",
  isOwnCgroup: true,
  sandbox: { id: "s1", createdAt: 900, hostNetwork: false, image: "pause" },
  containers: [{ id: "c1", name: "main", image: "demo", startedAt: 1000 }],
};

/** A machine whose cgroups are a table. */
function machine(measured?: () => RuntimeUsages | undefined) {
  const clock = new FakeClock();
  const cgroups: Record<string, CgroupUsage> = {
    "/": usage(10, 5000),
    "/pods": usage(5, 300, 1000),
    "/pods/burst": usage(4, 250),
    "/pods/podu1": usage(3, 200),
    "/pods/podu1/c1": usage(2, 100),
    "/pods/podu1/s1": usage(1, 50),
  };
  const pods: SampledPod[] = [web];
  const looked: string[] = [];
  const detailed: string[] = [];
  const disk = { space };
  const tasks = { most: 100, running: 40 };
  const filesystems = new FilesystemSampler(
    { clock, space: async () => disk.space, imageFilesystems: async () => ({ images: [], containers: [] }) },
    { rootDir: "/r" },
  );
  const sampler = new Sampler(
    {
      clock,
      filesystems,
      pods: () => pods,
      ...(measured && { runtimeUsages: async () => measured() }),
      cgroups: {
        read: (path) => cgroups[path] ?? {},
        readWithDetails: (path) => {
          detailed.push(path);
          return { usage: cgroups[path] ?? {}, details: { disks: [], oomKills: 1 } };
        },
        memory: (path) => cgroups[path]?.memory,
        childOf: (path, id) => {
          looked.push(id);
          return cgroups[`${path}/${id}`] && `${path}/${id}`;
        },
        processIn: (path) => (path.endsWith("s1") ? 42 : undefined),
        createdAt: (path) => (cgroups[path] === undefined ? undefined : 7),
      },
      node: {
        tasks: () => ({ ...tasks }),
        swap: () => ({ total: 0, free: 0 }),
        interfaces: (pid) => [{ ...packets, name: `of ${pid}`, rxBytes: 1, rxErrors: 0, txBytes: 2, txErrors: 0 }],
        withPressure: (found) => found,
        filesystems: async () => [{ device: "/dev/a", type: "ext4", mountpoint: "/", space }],
      },
    },
    {
      memoryBytes: 8000,
      bootedAt: 1,
      podsCgroup: "/pods",
      classCgroups: ["/pods/burst", "/absent"],
      intervalMs: () => 10_000,
      systemCgroups: () => ({ kubelet: "", misc: "/absent" }),
    },
  );
  return { clock, cgroups, pods, looked, detailed, disk, tasks, sampler };
}

test("a sample has the node, its pods, their containers and their network", async () => {
  const { sampler } = machine();
  await sampler.sample({ signal });
  const pod = sampler.pods.get("u1");
  assert.deepEqual([pod?.uid, pod?.namespace, pod?.name, pod?.startedAt], ["u1", "default", "web", 900]);
  assert.equal(pod?.usage.memory?.workingSet, 200);
  assert.deepEqual(
    pod?.containers.map(({ name, usage: of }) => [name, of.memory?.workingSet]),
    [["main", 100]],
  );
  assert.equal(pod?.network?.[0]?.name, "of 42");
  assert.equal(sampler.node?.usage.memory?.workingSet, 5000);
  assert.deepEqual(
    sampler.node?.system.map(({ name, startedAt }) => [name, startedAt]),
    [["pods", 7]],
    "cgroups that are not configured or not there are left out",
  );
});

test("what the runtime measures comes before cgroups, also of what has none; without it cgroups tell", async () => {
  let found: RuntimeUsages | undefined = new Map([
    ["s1", { usage: usage(30, 900), network: [] }],
    ["c1", { usage: usage(20, 800) }],
  ]);
  const { sampler, cgroups, clock } = machine(() => found);
  delete cgroups["/pods/podu1/c1"];
  await sampler.sample({ signal });
  const shown = (): unknown[] => {
    const pod = sampler.pods.get("u1");
    return [pod?.usage.memory?.workingSet, pod?.containers[0]?.usage.memory?.workingSet, pod?.network?.length];
  };
  assert.deepEqual(shown(), [900, 800, 0]);
  found = undefined;
  await clock.advance(10_000);
  await sampler.sample({ signal });
  assert.deepEqual(shown(), [200, undefined, 1]);
});

test("a runtime counts no swap of a pod: it is that of its containers", async () => {
  const { memory, ...rest } = usage(20, 800);
  const measured = new Map([
    ["s1", { usage: usage(30, 900) }],
    ["c1", { usage: memory ? { ...rest, memory: { ...memory, swap: 70 } } : rest }],
  ]);
  const { sampler } = machine(() => measured);
  await sampler.sample({ signal });
  const pod = sampler.pods.get("u1")?.usage.memory;
  assert.deepEqual([pod?.swap, pod?.workingSet], [70, 900]);
});

test("the rate of CPU usage is the mean since the sample before; samples in quick succession keep it", async () => {
  const { sampler, clock, cgroups } = machine();
  await sampler.sample({ signal });
  assert.equal(sampler.pods.get("u1")?.usage.nanoCores, undefined);
  await clock.advance(10_000);
  cgroups["/pods/podu1"] = usage(3 + 5e9, 200);
  await sampler.sample({ signal });
  assert.equal(sampler.pods.get("u1")?.usage.nanoCores, 5e8, "5 s of CPU time in 10 s");
  await clock.advance(100);
  cgroups["/pods/podu1"] = usage(3 + 6e9, 200);
  await sampler.sample({ signal });
  assert.equal(sampler.pods.get("u1")?.usage.nanoCores, 5e8);
});

test("a container whose counter went back is another one", async () => {
  const { sampler, clock, cgroups } = machine();
  cgroups["/pods/podu1"] = usage(9e9, 200);
  await sampler.sample({ signal });
  await clock.advance(10_000);
  cgroups["/pods/podu1"] = usage(1e9, 200);
  await sampler.sample({ signal });
  assert.equal(sampler.pods.get("u1")?.usage.nanoCores, undefined);
});

test("the cgroup of a container is looked for once, and evicted with the pod", async () => {
  const { sampler, looked, pods } = machine();
  await sampler.sample({ signal });
  await sampler.sample({ signal });
  assert.deepEqual(looked, ["c1", "s1"]);
  pods.length = 0;
  await sampler.sample({ signal });
  assert.equal(sampler.pods.size, 0);
  pods.push(web);
  await sampler.sample({ signal });
  assert.deepEqual(looked, ["c1", "s1", "c1", "s1"]);
});

test("a pod without a cgroup of its own has the sum of its containers", async () => {
  const { sampler, pods } = machine();
  pods[0] = { ...web, isOwnCgroup: false };
  await sampler.sample({ signal });
  const { memory, pids } = sampler.pods.get("u1")?.usage ?? {};
  assert.deepEqual([memory?.workingSet, pids], [100, 3]);
});

test("a sample that is asked for while one runs is taken after it", async () => {
  const { sampler, cgroups } = machine();
  const first = sampler.sample({ signal });
  const second = sampler.sample({ signal });
  await first;
  cgroups["/"] = usage(10, 6000);
  const third = sampler.sample({ signal });
  await Promise.all([second, third]);
  assert.equal(sampler.node?.usage.memory?.workingSet, 6000);
});

test("a caller that leaves does not end the sample for others", async () => {
  const { sampler } = machine();
  const leaving = new AbortController();
  const first = sampler.sample({ signal: leaving.signal });
  const second = sampler.sample({ signal });
  leaving.abort(new Error("left"));
  await assert.rejects(first, /left/);
  await second;
  assert.equal(sampler.pods.size, 1);
});

test("readers get a new sample for a new pod or container, at most once a second", async () => {
  const { sampler, clock, pods, cgroups } = machine();
  const taken = async (): Promise<number | undefined> => {
    await sampler.refresh({ signal });
    return sampler.node?.usage.at.mono;
  };
  assert.equal(await taken(), 0, "the first");
  await clock.advance(2000);
  assert.equal(await taken(), 0, "nothing is new");
  cgroups["/pods/podu1/c2"] = usage(2, 100);
  pods[0] = { ...web, containers: [...web.containers, { id: "c2", name: "other", image: "demo", startedAt: 1 }] };
  assert.equal(await taken(), 2000);
  pods.push({ ...web, uid: "u2", cgroup: "/pods/podu2" });
  await clock.advance(500);
  assert.equal(await taken(), 2000);
  await clock.advance(500);
  assert.equal(await taken(), 3000);
});

test("signals: memory of the node and of all pods, tasks and filesystems, without a sample of the pods", async () => {
  const { sampler, clock } = machine();
  const { at, ...signals } = await sampler.signals({ signal, spaceAgeMs: 0 });
  assert.equal(at.mono, clock.now().mono);
  assert.deepEqual(signals, {
    memory: { capacity: 8000, workingSet: 5000 },
    podsMemory: { capacity: 1000, workingSet: 300 },
    tasks: { most: 100, running: 40 },
    filesystems: { at, node: space },
  });
  assert.equal(sampler.pods.size, 0);
});

test("the pods' memory is no signal without a limit", async () => {
  const { sampler, cgroups } = machine();
  cgroups["/pods"] = usage(5, 300);
  assert.equal((await sampler.signals({ signal, spaceAgeMs: 0 })).podsMemory, undefined);
});

test("details of every cgroup, also of classes and sandboxes, are read only while somebody asks for them", async () => {
  const { sampler, clock, detailed } = machine();
  await sampler.sample({ signal });
  assert.deepEqual([detailed, sampler.node?.classes, sampler.pods.get("u1")?.sandbox], [[], [], undefined]);
  await sampler.withDetails({ signal });
  const every = ["/", "/pods", "/pods/burst", "/pods/podu1/c1", "/pods/podu1/s1", "/pods/podu1"];
  assert.deepEqual(detailed.toSorted(), every.toSorted());
  assert.equal(sampler.node?.filesystems[0]?.device, "/dev/a");
  assert.deepEqual(sampler.pods.get("u1")?.sandbox?.usage.details, { disks: [], oomKills: 1 });
  await sampler.withDetails({ signal });
  assert.equal(detailed.length, every.length, "the store has them: nothing is read");
  await clock.advance(5 * 60_000);
  await sampler.sample({ signal });
  assert.equal(detailed.length, every.length, "nobody asked for minutes");
});

test("samples once an interval, which may change while it runs", async () => {
  const { sampler, clock } = machine();
  const stop = new AbortController();
  const run = sampler.run(stop.signal).catch(() => undefined);
  await clock.advance(0);
  const first = sampler.node;
  await clock.advance(9999);
  assert.equal(sampler.node, first);
  await clock.advance(1);
  assert.notEqual(sampler.node, first);
  stop.abort();
  await run;
});

test("node and pods are of one sample: neither is shown before the other is read", async () => {
  const { sampler, cgroups, clock, pods } = machine();
  await sampler.sample({ signal });
  const [node, before] = [sampler.node, sampler.pods];
  cgroups["/"] = usage(20, 6000);
  let seen: unknown;
  // Reading pods is the last part of a sample.
  Object.defineProperty(pods, "0", {
    configurable: true,
    get: () => {
      seen = [sampler.node === node, sampler.pods === before];
      return web;
    },
  });
  await clock.advance(1000);
  await sampler.sample({ signal });
  assert.deepEqual(seen, [true, true]);
  assert.equal(sampler.node?.usage.memory?.workingSet, 6000);
  assert.notEqual(sampler.pods, before);
});

test("the node's sample has its filesystems and its tasks", async () => {
  const { sampler } = machine();
  await sampler.sample({ signal });
  assert.deepEqual(sampler.node?.tasks, { most: 100, running: 40 });
  assert.equal(sampler.node?.disks.node, space);
});

test("filesystems and tasks of the summary are at most a second old, usage as old as the sample", async () => {
  const { sampler, clock, cgroups, disk, tasks } = machine();
  assert.equal(await sampler.current({ signal }).then((found) => found?.node.usage.memory?.workingSet), 5000);
  const first = await sampler.current({ signal });
  disk.space = { ...space, inodesFree: 2 };
  tasks.running = 70;
  cgroups["/"] = usage(20, 6000);
  await clock.advance(999);
  assert.equal((await sampler.current({ signal }))?.node, first?.node);
  await clock.advance(1);
  const second = await sampler.current({ signal });
  assert.deepEqual(second?.node, { ...first?.node, disks: second?.node.disks, tasks: { most: 100, running: 70 } });
  assert.equal(second?.node.disks.node?.inodesFree, 2);
  assert.equal(second?.pods, first?.pods);
  assert.equal((await sampler.current({ signal }))?.node, second?.node, "one object, so that its page is written once");
  disk.space = { ...space, inodesFree: 1 };
  await clock.advance(1000);
  assert.equal((await sampler.current({ signal }))?.node.disks.node?.inodesFree, 1, "also of one that is refreshed");
  await sampler.sample({ signal });
  assert.equal((await sampler.current({ signal }))?.node, sampler.node);
});
