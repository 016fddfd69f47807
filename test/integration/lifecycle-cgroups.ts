/** The cgroups of pods on the kernel that is there: their places, their limits, and that they go with the pod. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();

const FLAGS = ["--pod-max-pids=64", "--system-reserved=memory=64Mi"];
const RESERVED = ["--kube-reserved=cpu=250m,memory=32Mi,pid=1000", "--enforce-node-allocatable=pods,kube-reserved"];
const MIB = 2 ** 20;
const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");

describe("cgroups of pods", () => {
  const site = new Site();
  const root = site.layout.cgroupRoot;
  let agent: Agent;

  /** A file of a cgroup; the name of version 1, and of version 2 after it. */
  const fileOf = (path: string, controller: string, [v1, v2]: readonly [string, string]): string => {
    const directory = isUnified ? "/sys/fs/cgroup" : join("/sys/fs/cgroup", controller);
    return join(directory, root, path, isUnified ? v2 : v1);
  };
  const read = (...file: Parameters<typeof fileOf>): string => readFileSync(fileOf(...file), "utf8").trim();
  const SHARES = ["cpu.shares", "cpu.weight"] as const;
  const shares = (path: string): string => read(path, "cpu", SHARES);
  const weight = (value: number): string => String(isUnified ? 1 + Math.floor(((value - 2) * 9999) / 262_142) : value);
  const memory = (path: string): string => read(path, "memory", ["memory.limit_in_bytes", "memory.max"]);
  const pids = (path: string): string => read(path, "pids", ["pids.max", "pids.max"]);
  const quota = (path: string): string => {
    if (isUnified) return read(path, "cpu", ["", "cpu.max"]);
    return `${read(path, "cpu", ["cpu.cfs_quota_us", ""])} ${read(path, "cpu", ["cpu.cfs_period_us", ""])}`;
  };
  /** Where a cgroup is in each hierarchy. */
  const directories = (path: string): string[] => {
    const tops = isUnified ? [""] : readdirSync("/sys/fs/cgroup");
    return tops.map((top) => join("/sys/fs/cgroup", top, root, path));
  };
  const places = (uid: string): string[] => {
    const tops = isUnified ? [""] : readdirSync("/sys/fs/cgroup");
    const classes = ["", "burstable", "besteffort"];
    return tops.flatMap((top) =>
      classes.map((one) => join("/sys/fs/cgroup", top, root, "kubepods", one, `pod${uid}`)).filter(existsSync),
    );
  };

  /** The sum of a class follows its pods a moment later. */
  const sums = async (path: string, wanted: string): Promise<void> => {
    await until(`the share of ${path}`, () => shares(path) === wanted, {
      seen: () => `${shares(path)}, not ${wanted}`,
    });
  };

  before(async () => {
    agent = await site.up(FLAGS);
  });

  it("what all pods may use is set before there is a pod", async () => {
    await until("the cgroup of all pods", () => existsSync(fileOf("kubepods", "cpu", SHARES)));
    await until("its share", () => shares("kubepods") !== weight(1024));
  });

  after(() => site.close());

  it("a guaranteed pod has its share, its quota, its memory and its number of processes", async () => {
    const full = { cpu: "250m", memory: "64Mi" };
    const containers = [shell("main", forever(), { resources: { limits: full, requests: full } })];
    site.write(manifest("guaranteed", { containers }));
    const { uid } = await site.running("guaranteed");
    const path = `kubepods/pod${uid}`;
    assert.equal(shares(path), weight(256));
    assert.equal(quota(path), "25000 100000");
    assert.equal(memory(path), String(64 * MIB));
    assert.equal(pids(path), "64");
  });

  it("a burstable pod without limits only has its share, and its class has the sum", async () => {
    const requests = { cpu: "500m", memory: "16Mi" };
    site.write(manifest("burst", { containers: [shell("main", forever(), { resources: { requests } })] }));
    const { uid } = await site.running("burst");
    const path = `kubepods/burstable/pod${uid}`;
    assert.equal(shares(path), weight(512));
    assert.match(quota(path), /^(-1|max) /);
    await sums("kubepods/burstable", weight(512));
  });

  it("pod-level limits hold without any of a container, overhead on top", async () => {
    const resources = { limits: { cpu: "1", memory: "96Mi" }, requests: { cpu: "200m", memory: "96Mi" } };
    const overhead = { memory: "32Mi" };
    site.write(manifest("whole", { containers: [shell("main", forever())], resources, overhead }));
    const { uid } = await site.running("whole");
    const path = `kubepods/burstable/pod${uid}`;
    assert.equal(memory(path), String(128 * MIB));
    assert.equal(quota(path), "100000 100000");
    await sums("kubepods/burstable", weight(512 + 204));
  });

  it("a best-effort pod has the least share, and all pods together what the node has for them", async () => {
    site.write(manifest("modest"));
    const { uid } = await site.running("modest");
    assert.equal(shares(`kubepods/besteffort/pod${uid}`), weight(2));
    assert.equal(shares("kubepods/besteffort"), weight(2));
    const total = Number(/^MemTotal:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;
    assert.equal(Number(memory("kubepods")), total - 64 * MIB);
  });

  it("goes with the pod, in every hierarchy", async () => {
    const { uid } = await site.running("burst");
    assert.ok(places(uid).length > 0);
    site.remove("burst");
    await site.gone("burst");
    assert.deepEqual(places(uid), []);
    await sums("kubepods/burstable", weight(204));
  });

  it("a restart of the agent leaves limits and sums as they are", async () => {
    const { uid } = await site.running("whole");
    await agent.end("SIGTERM");
    agent = await site.up(FLAGS);
    await site.running("whole");
    assert.equal(memory(`kubepods/burstable/pod${uid}`), String(128 * MIB));
    const requests = { cpu: "100m" };
    site.write(manifest("late", { containers: [shell("main", forever(), { resources: { requests } })] }));
    await site.running("late");
    await sums("kubepods/burstable", weight(307));
  });

  it("a reservation is enforced on its cgroup, and cgroups of unknown pods are removed at the start", async () => {
    for (const directory of [...directories("daemons"), ...directories("kubepods/besteffort/podorphan-1")]) {
      mkdirSync(directory, { recursive: true });
    }
    await agent.end("SIGTERM");
    agent = await site.up([...FLAGS, ...RESERVED, `--kube-reserved-cgroup=${root}/daemons`]);
    // They are written one after the other.
    const limits = (): string => [memory("daemons"), shares("daemons"), pids("daemons")].join();
    const wanted = [32 * MIB, weight(256), 1000].join();
    await until("the limits of the daemons", () => limits() === wanted, { seen: limits });
    await until("the orphaned cgroup is removed", () => places("orphan-1").length === 0);
    await site.running("whole");
  });

  it("memory is throttled and protected with MemoryQoS", { skip: !isUnified && "needs cgroup v2" }, async () => {
    await agent.end("SIGTERM");
    const file = join(site.dir, "kubelet.json");
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    const policy = { featureGates: { MemoryQoS: true }, memoryReservationPolicy: "TieredReservation" };
    writeFileSync(file, JSON.stringify({ ...head, ...policy }));
    agent = await site.up([...FLAGS, `--config=${file}`]);
    const resources = { requests: { memory: "16Mi" }, limits: { memory: "36Mi" } };
    site.write(manifest("guarded", { containers: [shell("main", forever(), { resources })] }));
    const { uid } = await site.running("guarded");
    const path = `kubepods/burstable/pod${uid}`;
    const inside = (name: string) => read(path, "memory", ["", name]);
    assert.equal(inside("memory.low"), String(16 * MIB));
    await until("the class is protected", () => Number(read("kubepods/burstable", "memory", ["", "memory.low"])) > 0);
    assert.ok(Number(read("kubepods", "memory", ["", "memory.min"])) >= 16 * MIB);
    const [directory = ""] = directories(path);
    const highs = readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => readFileSync(join(directory, name, "memory.high"), "utf8").trim());
    // 16 MiB and nine tenths of the 20 MiB between request and limit.
    assert.ok(highs.includes(String(34 * MIB)), highs.join());
  });
});
