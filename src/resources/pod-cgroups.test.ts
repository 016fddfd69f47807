import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Logger } from "../lib/log.ts";
import type { ResourceRequirements } from "../model/generated/types.ts";
import type { CgroupValues } from "../model/pod-cgroup-values.ts";
import { parseResources } from "../model/resources.ts";
import { type CgroupDriver, type CgroupOptions, type LimitRules, PodCgroups } from "./index.ts";

const UID = "1b2c-3d";
const full = { cpu: "1", memory: "64Mi" };

const kinds: Readonly<Record<string, ResourceRequirements>> = {
  Guaranteed: { limits: full, requests: full },
  Burstable: { requests: { cpu: "100m" } },
  BestEffort: {},
};

/** Cgroups that only remember, and a kernel that refuses what the test says. */
class Machine {
  readonly values = new Map<string, CgroupValues>();
  readonly sets: string[] = [];
  readonly removed: string[] = [];
  readonly ended: string[] = [];
  readonly forgotten: string[] = [];
  readonly warnings: unknown[] = [];
  readonly events: string[] = [];
  refuses: string[] = [];
  noCgroup = false;
  /** Processes that the runtime forgot in each cgroup. */
  leftProcesses = 0;
  /** How often what stands beside the pods was refreshed. */
  besides = 0;
  readonly used = new Map<string, number>();
  readonly children = new Map<string, readonly string[]>();
  rules: LimitRules = {
    cpuCfsQuota: true,
    cpuPeriodUs: 100_000,
    hugepageSizes: [],
    podPidsLimit: 50,
    node: { allocatable: parseResources({ cpu: "2", memory: "1Gi" }), pids: 1000 },
  };

  cgroups(options: Partial<CgroupOptions> & { driver: CgroupDriver }): PodCgroups {
    const log: Pick<Logger, "warn"> = { warn: (_message, fields) => void this.warnings.push(fields) };
    return new PodCgroups(
      {
        log,
        event: (_type, reason, message) => void this.events.push(`${reason} ${message}`),
        beside: [{ refresh: async () => void this.besides++ }],
        host: { removeCgroup: (path) => Promise.resolve(void this.removed.push(path)) },
        endProcesses: (path) => {
          this.ended.push(path);
          return this.leftProcesses;
        },
        tree: {
          ensure: async (path) => {
            if (this.noCgroup) throw new Error("read-only file system");
            if (!this.values.has(path)) this.values.set(path, {});
          },
          set: async (path, values) => {
            if (!this.values.has(path)) return [`${path}: no such cgroup`];
            this.sets.push(path);
            this.values.set(path, { ...this.values.get(path), ...values });
            return this.refuses;
          },
          exists: (path) => this.values.has(path),
          read: (path) => this.values.get(path),
          forget: (path) => Promise.resolve(void this.forgotten.push(path)),
          memoryUsage: (path, id) => (id === "c1" ? path.length : undefined),
          unreclaimable: (path) => this.used.get(path),
          childrenOf: (path) => this.children.get(path) ?? [],
        },
      },
      { root: "/", ...options, rules: () => this.rules },
    );
  }
}

const of = (kind: string, uid = UID) =>
  pod("web", uid)
    .container("app", { resources: kinds[kind] ?? {} })
    .build();

describe("the cgroup of a pod", () => {
  const cases: [CgroupDriver, string, string, string][] = [
    ["cgroupfs", "/", "Guaranteed", "/kubepods/pod1b2c-3d"],
    ["cgroupfs", "/", "Burstable", "/kubepods/burstable/pod1b2c-3d"],
    ["cgroupfs", "/", "BestEffort", "/kubepods/besteffort/pod1b2c-3d"],
    ["systemd", "/", "Guaranteed", "/kubepods.slice/kubepods-pod1b2c_3d.slice"],
    ["systemd", "/", "Burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice"],
    ["systemd", "/", "BestEffort", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1b2c_3d.slice"],
    ["systemd", "/agents", "Guaranteed", "/agents.slice/agents-kubepods.slice/agents-kubepods-pod1b2c_3d.slice"],
    [
      ...(["systemd", "/agents/no-1", "Burstable"] as const),
      "/agents.slice/agents-no_1.slice/agents-no_1-kubepods.slice/agents-no_1-kubepods-burstable.slice/agents-no_1-kubepods-burstable-pod1b2c_3d.slice",
    ],
    [
      "systemd",
      "/a.slice/a-b.slice",
      "Guaranteed",
      "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod1b2c_3d.slice",
    ],
    ["cgroupfs", "", "Burstable", "/kubepods/burstable/pod1b2c-3d"],
    ["cgroupfs", "/agents/one", "Burstable", "/agents/one/kubepods/burstable/pod1b2c-3d"],
    ["cgroupfs", "/agents/one/", "Guaranteed", "/agents/one/kubepods/pod1b2c-3d"],
  ];
  for (const [driver, root, kind, want] of cases) {
    test(`${driver} below "${root}", ${kind}: ${want}`, async () => {
      const machine = new Machine();
      const made = machine.cgroups({ driver, root });
      assert.equal(made.parentOf(of(kind)), want);
      await made.ensure(of(kind));
      assert.equal(machine.values.get(want)?.pids, 50, "and it is made there, with its limits");
      assert.deepEqual(made.read(of(kind)), machine.values.get(want));
    });
  }

  test("is removed wherever it may be, because the class of a pod that is gone is not known", async () => {
    const machine = Object.assign(new Machine(), { leftProcesses: 1 });
    const { removed, ended, forgotten } = machine;
    await machine.cgroups({ driver: "cgroupfs", root: "/agents" }).remove(UID);
    assert.deepEqual(ended, removed, "what still runs in it is killed first");
    assert.deepEqual(forgotten, removed, "a slice that systemd still has would come back");
    assert.ok(machine.warnings.length > 0, "killing what the runtime forgot is a warning");
    assert.deepEqual(removed.sort(), [
      "/agents/kubepods/besteffort/pod1b2c-3d",
      "/agents/kubepods/burstable/pod1b2c-3d",
      "/agents/kubepods/pod1b2c-3d",
    ]);
  });

  test("without cgroups per class nothing is made or removed, and pods go to the root", async () => {
    const machine = new Machine();
    const made = machine.cgroups({ driver: "cgroupfs", root: "/agents", perQos: false });
    await made.ensure(of("Burstable"));
    await made.remove(UID);
    assert.equal(made.parentOf(of("Burstable")), "/agents");
    assert.deepEqual([machine.values.size, machine.removed], [0, []]);
  });
});

describe("the cgroups above pods", () => {
  test("all pods are limited to what the node has for them, and follow the configuration", async () => {
    const machine = new Machine();
    const made = machine.cgroups({ driver: "cgroupfs" });
    await made.ensure(of("BestEffort"));
    assert.deepEqual(machine.values.get("/kubepods"), {
      cpuShares: 2048,
      memoryLimit: 2 ** 30,
      pids: 1000,
      hugepages: {},
    });
    const node = { allocatable: parseResources({ cpu: "1", memory: "512Mi" }), pids: 1000 };
    machine.rules = { ...machine.rules, node };
    await made.ensure(of("BestEffort"));
    assert.equal(machine.values.get("/kubepods")?.memoryLimit, 2 ** 29);
  });

  test("the burstable class has the sum of its pods' requests, of those that are there", async () => {
    const machine = new Machine();
    const made = machine.cgroups({ driver: "systemd" });
    const shares = (): number | undefined => machine.values.get("/kubepods.slice/kubepods-burstable.slice")?.cpuShares;
    await made.ensure(of("Burstable", "a"));
    assert.equal(shares(), 102);
    await made.ensure(of("Burstable", "b"));
    assert.equal(shares(), 204);
    await made.ensure(of("Guaranteed", "c"));
    assert.equal(shares(), 204);
    await made.remove("a");
    assert.equal(shares(), 102);
    assert.equal(machine.values.get("/kubepods.slice/kubepods-besteffort.slice")?.cpuShares, 2);
  });
});

describe("setting limits", () => {
  test("what is set already is not written again, unless the cgroup is gone", async () => {
    const machine = new Machine();
    const made = machine.cgroups({ driver: "cgroupfs" });
    const burstable = of("Burstable");
    await made.ensure(burstable);
    const before = machine.sets.length;
    await made.ensure(burstable);
    assert.equal(machine.sets.length, before);
    machine.values.delete(made.parentOf(burstable));
    await made.ensure(burstable);
    assert.ok(machine.values.has(made.parentOf(burstable)));
  });

  test("a limit that the kernel refuses is warned of once, and the pod runs without it", async () => {
    const machine = new Machine();
    machine.refuses = ["pids.max: there is no pids controller"];
    const made = machine.cgroups({ driver: "cgroupfs" });
    await made.ensure(of("Burstable", "a"));
    await made.ensure(of("Burstable", "b"));
    assert.equal(machine.warnings.length, 1);
  });

  test("limits that only may grow do not become less, until they may", async () => {
    const machine = new Machine();
    const made = machine.cgroups({ driver: "cgroupfs" });
    const sized = (memory: string, cpu: string) =>
      pod("web", UID)
        .container("app", { resources: { limits: { memory, cpu }, requests: { memory, cpu } } })
        .build();
    const now = () => {
      const { memoryLimit, cpuQuota } = made.read(sized("1Mi", "1")) ?? {};
      return [memoryLimit, cpuQuota?.quota];
    };
    await made.ensure(sized("64Mi", "1"));
    await made.ensure(sized("32Mi", "2"), { growOnly: true });
    assert.deepEqual(now(), [64 * 2 ** 20, 200_000]);
    await made.ensure(sized("32Mi", "2"));
    assert.deepEqual(now(), [32 * 2 ** 20, 200_000]);
  });

  test("a cgroup that cannot be made is an error, and tried again", async () => {
    const machine = new Machine();
    machine.noCgroup = true;
    const made = machine.cgroups({ driver: "cgroupfs" });
    await assert.rejects(made.ensure(of("Burstable")), /read-only/);
    machine.noCgroup = false;
    await made.ensure(of("Burstable"));
    assert.ok(machine.values.has("/kubepods/burstable/pod1b2c-3d"));
  });
});

describe("the refresh of what all pods have", () => {
  const classes = ["/kubepods", "/kubepods/burstable", "/kubepods/besteffort"];

  test("sets again what somebody changed or removed, and writes nothing otherwise", async () => {
    const machine = new Machine();
    const cgroups = machine.cgroups({ driver: "cgroupfs" });
    await cgroups.refresh();
    assert.deepEqual(machine.sets, ["/kubepods"], "before the first pod only what does not depend on pods");
    await cgroups.ensure(of("Burstable"));
    const wanted = classes.map((path) => machine.values.get(path));
    await cgroups.refresh();
    const count = machine.sets.length;
    await cgroups.refresh();
    assert.equal(machine.sets.length, count);
    machine.values.set("/kubepods/burstable", { cpuShares: 2 });
    machine.values.delete("/kubepods/besteffort");
    await cgroups.refresh();
    assert.deepEqual(
      classes.map((path) => machine.values.get(path)),
      wanted,
    );
    await cgroups.ensure(of("Burstable", "other"));
    assert.equal(machine.values.get("/kubepods/burstable")?.cpuShares, 204);
    await cgroups.refresh();
    assert.equal(machine.values.get("/kubepods/burstable")?.cpuShares, 204);
  });

  test("a kernel that refuses is a warning, once for each reason", async () => {
    const machine = new Machine();
    const cgroups = machine.cgroups({ driver: "cgroupfs" });
    await cgroups.ensure(of("Burstable"));
    machine.values.clear();
    machine.noCgroup = true;
    await cgroups.refresh();
    assert.equal(machine.warnings.length, 1);
    await cgroups.refresh();
    assert.equal(machine.warnings.length, 1);
  });

  test("a pod's cgroup is there or not; without cgroups of pods nothing is missed", async () => {
    const machine = new Machine();
    const cgroups = machine.cgroups({ driver: "cgroupfs" });
    assert.equal(cgroups.exists(of("Burstable")), false);
    await cgroups.ensure(of("Burstable"));
    assert.equal(cgroups.exists(of("Burstable")), true);
    assert.equal(machine.cgroups({ driver: "systemd" }).exists(of("Burstable")), false);
    assert.equal(machine.cgroups({ driver: "systemd", perQos: false }).exists(of("Burstable")), true);
  });
});

describe("events of the node's limits", () => {
  test("the first success is told once", async () => {
    const machine = new Machine();
    const cgroups = machine.cgroups({ driver: "cgroupfs" });
    await cgroups.ensure(of("Burstable"));
    await cgroups.ensure(of("Guaranteed", "other"));
    assert.deepEqual(machine.events, ["NodeAllocatableEnforced Updated Node Allocatable limit across pods"]);
  });

  test("what the kernel refused is tried again at the next refresh, and then told", async () => {
    const machine = new Machine();
    const cgroups = machine.cgroups({ driver: "cgroupfs" });
    machine.refuses = ["memory: device or resource busy"];
    await cgroups.refresh();
    await cgroups.refresh();
    machine.refuses = [];
    await cgroups.refresh();
    assert.deepEqual(
      machine.events.map((event) => event.split(" ")[0]),
      ["FailedNodeAllocatableEnforcement", "NodeAllocatableEnforced"],
    );
  });

  test("a failure is told once, and the success after it", async () => {
    const machine = new Machine();
    machine.refuses = ["memory: device or resource busy"];
    const cgroups = machine.cgroups({ driver: "cgroupfs" });
    await cgroups.ensure(of("Burstable"));
    await cgroups.ensure(of("Guaranteed", "other"));
    machine.refuses = [];
    machine.rules = { ...machine.rules, node: { ...machine.rules.node, pids: 2000 } };
    await cgroups.ensure(of("Guaranteed", "third"));
    assert.deepEqual(machine.events, [
      'FailedNodeAllocatableEnforcement Failed to update Node Allocatable Limits "/kubepods": memory: device or resource busy',
      "NodeAllocatableEnforced Updated Node Allocatable limit across pods",
    ]);
  });
});

describe("memory between the classes", () => {
  const guaranteed = (uid: string) =>
    pod("web", uid)
      .container("app", { resources: { limits: full, requests: full } })
      .build();
  const burstable = (uid: string) =>
    pod("web", uid)
      .container("app", { resources: { requests: { memory: "100Mi" } } })
      .build();
  const MIB = 2 ** 20;
  const classes = (machine: Machine, key: keyof CgroupValues) =>
    ["/kubepods", "/kubepods/burstable", "/kubepods/besteffort"].map((path) => machine.values.get(path)?.[key]);

  test("each class leaves room for what the classes above it request", async () => {
    const machine = new Machine();
    machine.rules = { ...machine.rules, qosReserved: { percent: 50, memory: 1000 * MIB } };
    const made = machine.cgroups({ driver: "cgroupfs" });
    await made.ensure(guaranteed("a"));
    await made.ensure(burstable("b"));
    assert.deepEqual(classes(machine, "memoryLimit").slice(1), [968 * MIB, 918 * MIB]);
    machine.rules = { ...machine.rules, qosReserved: { percent: 100, memory: 100 * MIB } };
    await made.refresh();
    assert.deepEqual(classes(machine, "memoryLimit").slice(1), [36 * MIB, 0], "never below 0, which would be no limit");
    machine.rules = { ...machine.rules, qosReserved: { percent: 0, memory: 1000 * MIB } };
    await made.refresh();
    await made.refresh();
    assert.deepEqual(classes(machine, "memoryLimit").slice(1), [-1, -1], "a reload lifts it");
  });

  test("a class that uses more than that gets what it uses, and nothing is killed", async () => {
    const machine = new Machine();
    machine.used.set("/kubepods/besteffort", 990 * MIB);
    machine.rules = { ...machine.rules, qosReserved: { percent: 100, memory: 1000 * MIB } };
    await machine.cgroups({ driver: "cgroupfs" }).ensure(guaranteed("a"));
    assert.deepEqual(classes(machine, "memoryLimit").slice(1), [936 * MIB, 990 * MIB]);
  });

  test("requests are protected on every level above the pod, and pods by their class", async () => {
    const machine = new Machine();
    machine.rules = { ...machine.rules, protectsMemory: true };
    const made = machine.cgroups({ driver: "cgroupfs" });
    await made.ensure(guaranteed("a"));
    await made.ensure(burstable("b"));
    assert.deepEqual(classes(machine, "memoryMin"), [164 * MIB, undefined, undefined]);
    assert.deepEqual(classes(machine, "memoryLow"), [undefined, 100 * MIB, undefined]);
    assert.equal(made.read(guaranteed("a"))?.memoryMin, 64 * MIB);
    assert.equal(made.read(burstable("b"))?.memoryLow, 100 * MIB);
    assert.deepEqual(made.requested, { guaranteed: 64 * MIB, burstable: 100 * MIB });
    machine.rules = { ...machine.rules, protectsMemory: false };
    await made.refresh();
    assert.deepEqual(classes(machine, "memoryMin")[0], 0, "without the policy nothing is protected");
  });

  test("a limit of all pods below what they use is not set, is an event, and is tried again", async () => {
    const machine = new Machine();
    machine.used.set("/kubepods", 2 ** 30 + 1);
    const made = machine.cgroups({ driver: "cgroupfs" });
    await made.refresh();
    assert.equal(machine.values.get("/kubepods")?.memoryLimit, undefined);
    assert.equal(machine.values.get("/kubepods")?.cpuShares, 2048, "the other limits are set");
    assert.match(machine.events.join(), /FailedNodeAllocatableEnforcement.*1073741825 bytes are in use/);
    machine.used.set("/kubepods", 5);
    await made.refresh();
    assert.equal(machine.values.get("/kubepods")?.memoryLimit, 2 ** 30);
    assert.equal(machine.events.at(-1), "NodeAllocatableEnforced Updated Node Allocatable limit across pods");
  });
});

test("pods are found by the names of their cgroups, of both drivers", () => {
  const machine = new Machine();
  machine.children.set("/kubepods", ["burstable", "besteffort", "poda-1", "other"]);
  machine.children.set("/kubepods/burstable", ["podb-2"]);
  assert.deepEqual(machine.cgroups({ driver: "cgroupfs" }).uids(), ["a-1", "b-2"]);
  const slices = new Machine();
  slices.children.set("/kubepods.slice", ["kubepods-burstable.slice", "kubepods-poda_1.slice", "x.scope"]);
  slices.children.set("/kubepods.slice/kubepods-besteffort.slice", ["kubepods-besteffort-podc_3.slice"]);
  assert.deepEqual(slices.cgroups({ driver: "systemd" }).uids(), ["a-1", "c-3"]);
});

test("what the kernel has of a pod and its containers, and nothing where pods have no cgroups of their own", async () => {
  for (const perQos of [undefined, true]) {
    const machine = new Machine();
    const made = machine.cgroups({ driver: "cgroupfs", ...(perQos !== undefined && { perQos }) });
    await made.ensure(of("Guaranteed"));
    assert.equal(made.memoryUsage(of("Guaranteed"), "c1"), "/kubepods/pod1b2c-3d".length);
    assert.equal(made.memoryUsage(of("Guaranteed"), "c2"), undefined);
    assert.equal(made.read(of("Guaranteed"))?.pids, 50);
    machine.children.set("/kubepods", ["podabc"]);
    assert.deepEqual(made.uids(), ["abc"]);
    await made.refresh();
    assert.equal(machine.values.get("/kubepods")?.pids, 1000);
  }
  const machine = new Machine();
  machine.children.set("/kubepods", ["podabc"]);
  const none = machine.cgroups({ driver: "cgroupfs", perQos: false });
  await none.ensure(of("Guaranteed"));
  await none.refresh();
  const seen = [none.memoryUsage(of("Guaranteed"), "c1"), none.read(of("Guaranteed")), none.uids()];
  assert.deepEqual([seen, machine.values.size], [[undefined, undefined, []], 0]);
});

test("the cgroup of a pod that comes back is limited anew, and processes that were left in it are warned of", async () => {
  const machine = new Machine();
  const made = machine.cgroups({ driver: "cgroupfs" });
  await made.ensure(of("Guaranteed"));
  machine.values.delete("/kubepods/pod1b2c-3d");
  await made.remove(UID);
  assert.deepEqual(machine.warnings, []);
  await made.ensure(of("Guaranteed"));
  assert.equal(machine.values.get("/kubepods/pod1b2c-3d")?.pids, 50);
  machine.leftProcesses = 3;
  await made.remove(UID);
  assert.deepEqual(machine.warnings[0], { uid: UID, processes: 3 });
});

test("a cgroup that somebody removed under a running pod is made and limited anew", async () => {
  const machine = new Machine();
  const made = machine.cgroups({ driver: "cgroupfs" });
  await made.ensure(of("Guaranteed"));
  machine.values.delete("/kubepods/pod1b2c-3d");
  await made.ensure(of("Guaranteed"));
  assert.equal(machine.values.get("/kubepods/pod1b2c-3d")?.pids, 50);
});

for (const perQos of [true, false]) {
  test(`a refresh also refreshes what stands beside the pods, ${perQos ? "with" : "without"} cgroups of pods`, async () => {
    const machine = new Machine();
    await machine.cgroups({ driver: "cgroupfs", perQos }).refresh();
    assert.equal(machine.besides, 1);
  });
}
