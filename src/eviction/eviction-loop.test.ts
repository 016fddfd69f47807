import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { EvictionLoop, type EvictionOptions } from "./eviction-loop.ts";
import { Evictions } from "./evictions.ts";
import type { PressureCondition } from "./signals.ts";
import { type ThresholdSettings, thresholdsOf } from "./thresholds.ts";

const MI = 2 ** 20;
const GI = 2 ** 30;

interface FakePod {
  readonly name: string;
  readonly memory: number;
  readonly request?: string;
  readonly isStatic?: boolean;
  /** Milliseconds from the stop to the end. */
  readonly endsAfterMs?: number;
  /** True if it ends only when its grace period is over. */
  readonly usesGrace?: boolean;
  readonly grace?: number;
  readonly inodes?: number;
}

const HARD = { evictionHard: { "memory.available": "1Gi" } };

const nodes: FakeNode[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
});

/** A node of 8 GiB whose memory is what its pods use, and whose disk is a number. */
class FakeNode {
  readonly clock = new FakeClock();
  readonly pressure = new LiveValue<readonly PressureCondition[]>([]);
  readonly stopped: { name: string; graceSeconds: number; message: string; disruption: string | undefined }[] = [];
  readonly events: string[] = [];
  readonly reclaimed: string[] = [];
  readonly ages: string[] = [];
  readonly options: LiveValue<EvictionOptions>;
  readonly loop: EvictionLoop;
  disk = 50 * GI;
  inodesFree = 0;
  inodes = 0;
  /** Called when what the runtime has of an evicted pod is removed. */
  onDiscard: (uid: string) => void = () => undefined;
  pods = new Map<string, FakePod>();
  stopping = new Set<string>();
  /** Pods that an earlier agent began to evict. */
  readonly inherited = new Set<string>();
  /** Called by image garbage collection. */
  onReclaim: () => Promise<void> = () => Promise.resolve();
  /** Called while the pods are measured. */
  onMeasure: () => Promise<void> = () => Promise.resolve();
  overLimits = false;
  reads = 0;
  /** How long ago filesystems were measured. */
  diskAgeMs = 0;
  /** What the loop asked for: the age of filesystems at each read, and the time for disks at each measurement of pods. */
  readonly spaceAges: number[] = [];
  readonly diskTimes: number[] = [];
  private readonly stop = new AbortController();
  private done: Promise<void> | undefined;

  constructor(settings: Partial<ThresholdSettings> = HARD, more: Partial<EvictionOptions> = {}) {
    const none = { evictionHard: {}, evictionSoft: {}, evictionSoftGracePeriod: {}, evictionMinimumReclaim: {} };
    const thresholds = thresholdsOf({ ...none, enforceNodeAllocatable: [], ...settings });
    this.options = new LiveValue({ thresholds, transitionMs: 60_000, maxPodGraceSeconds: 0, ...more });
    nodes.push(this);
    const { clock } = this;
    const evictions = new Evictions({
      clock,
      log: silent,
      candidates: () => [...this.pods.values()].filter(({ name }) => !this.stopping.has(name)).map(specOf),
      ending: () =>
        [...this.pods.values()].flatMap(({ name }) =>
          this.inherited.has(name) ? [{ uid: name, graceSeconds: 1 }] : [],
        ),
      stop: (uid, { message, disruption }, graceSeconds) => {
        this.stopped.push({ name: uid, graceSeconds, message, disruption });
        this.stopping.add(uid);
        const { endsAfterMs = 1000, usesGrace = false } = this.pods.get(uid) ?? {};
        clock.after(usesGrace ? graceSeconds * 1000 : endsAfterMs, () => this.pods.delete(uid));
      },
      isFinished: (uid) => !this.pods.has(uid),
      discard: async (uid) => this.onDiscard(uid),
      event: ({ name }, { reason }) => void this.events.push(`${reason} ${name}`),
      counted: () => undefined,
    });
    this.loop = new EvictionLoop(
      {
        clock,
        log: silent,
        evictions,
        signals: async ({ spaceAgeMs }) => {
          this.reads++;
          this.spaceAges.push(spaceAgeMs);
          const at = clock.now();
          const measuredAt = { ...at, mono: at.mono - this.diskAgeMs };
          const workingSet = [...this.pods.values()].reduce((sum, { memory }) => sum + memory, 0);
          const space = {
            device: 1,
            capacityBytes: 100 * GI,
            usedBytes: 0,
            inodes: this.inodes,
            inodesFree: this.inodesFree,
          };
          const node = { ...space, availableBytes: this.disk };
          return { at, memory: { capacity: 8 * GI, workingSet }, filesystems: { at: measuredAt, node, image: node } };
        },
        consumption: async (pods, { diskMs }) => {
          this.diskTimes.push(diskMs);
          await this.onMeasure();
          return new Map(
            pods.map(({ metadata: { uid = "" } }) => {
              const memory = this.pods.get(uid)?.memory ?? 0;
              return [
                uid,
                {
                  memory,
                  tasks: 1,
                  containers: [{ name: "c", memory }],
                  volumes: { bytes: memory, inodes: this.pods.get(uid)?.inodes ?? 1 },
                },
              ];
            }),
          );
        },
        reclaim: {
          deleteAllUnusedContainers: async () => void this.reclaimed.push("containers"),
          deleteUnusedImages: () => {
            this.reclaimed.push("images");
            return this.onReclaim();
          },
        },
        evictOverLimits: async () => this.overLimits,
        event: (_type, reason, message) => void this.events.push(`${reason}: ${message}`),
        acted: (signal, age) => void this.ages.push(`${signal} ${age}`),
      },
      this.options,
      this.pressure,
    );
  }

  add(...pods: FakePod[]): this {
    for (const pod of pods) this.pods.set(pod.name, pod);
    return this;
  }

  async run(ms: number): Promise<this> {
    void this.start();
    await this.clock.advance(ms);
    return this;
  }

  /** Resolves or rejects as the loop ends. */
  start(): Promise<void> {
    this.done ??= this.loop.run(this.stop.signal);
    return this.done;
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.clock.advance(20_000);
    await this.done?.catch(() => undefined);
  }

  get names(): string[] {
    return this.stopped.map(({ name }) => name);
  }
}

function specOf({ name, request, isStatic, grace }: FakePod): Pod {
  const resources = request === undefined ? {} : { requests: { memory: request } };
  const annotations: Record<string, string> = isStatic === true ? { "kubernetes.io/config.source": "file" } : {};
  return {
    metadata: { name, uid: name, annotations },
    spec: {
      containers: [{ name: "c", image: "i", resources }],
      ...(grace !== undefined && { terminationGracePeriodSeconds: grace }),
    },
  };
}

describe("memory", () => {
  test("enough: nobody is evicted, and it is read seldom", async () => {
    const node = new FakeNode().add({ name: "a", memory: GI });
    await node.run(60_000);
    assert.deepEqual([node.names, node.pressure.current], [[], []]);
    assert.ok(node.reads <= 61, `${node.reads} reads`);
  });

  test("the pod that exceeds its request by most is evicted within a second, with its numbers", async () => {
    const node = new FakeNode();
    node.add({ name: "small", memory: GI, request: "2Gi" }, { name: "hog", memory: GI, grace: 30 });
    await node.run(1500);
    node.add({ name: "hog", memory: 6.5 * GI, grace: 30 });
    await node.run(1000);
    const [first] = node.stopped;
    assert.deepEqual([first?.name, first?.graceSeconds], ["hog", 1]);
    const message =
      "The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. " +
      "Container c was using 6656Mi, request is 0, has larger consumption of memory. ";
    assert.deepEqual([first?.message, first?.disruption], [message, message]);
    assert.deepEqual(node.pressure.current, ["MemoryPressure"]);
    assert.deepEqual(node.events, ["EvictionThresholdMet: Attempting to reclaim memory", "Evicted hog"]);
    assert.match(node.ages.join(), /^memory\.available 0(\.\d+)?$/);
  });

  test("nobody else is evicted until the first one has ended and memory was read again", async () => {
    const node = new FakeNode();
    node.add({ name: "slow", memory: 5 * GI, endsAfterMs: 9000 }, { name: "other", memory: 2.5 * GI });
    await node.run(8900);
    assert.deepEqual(node.names, ["slow"]);
    await node.run(5000);
    assert.deepEqual(node.names, ["slow"], "its end was enough");
  });

  test("what an earlier agent began to evict is waited for, and measured after it", async () => {
    const node = new FakeNode().add({ name: "hog", memory: 5 * GI }, { name: "other", memory: 2.5 * GI });
    node.inherited.add("hog");
    node.stopping.add("hog");
    await node.run(5000);
    assert.deepEqual(node.names, []);
    node.pods.delete("hog");
    await node.run(20_000);
    assert.deepEqual(node.names, [], "its end was enough");
  });

  test("while it is not enough, one after the other goes", async () => {
    const node = new FakeNode();
    node.add({ name: "a", memory: 4 * GI }, { name: "b", memory: 3 * GI }, { name: "c", memory: 2 * GI });
    await node.run(10_000);
    assert.deepEqual(node.names, ["a"]);
    node.add({ name: "d", memory: 2.5 * GI });
    await node.run(10_000);
    assert.deepEqual(node.names, ["a", "b"]);
  });

  test("a pod that never ends is given up after half a minute, and the next one goes", async () => {
    const node = new FakeNode();
    node.add({ name: "stuck", memory: 5 * GI, endsAfterMs: 1e9 }, { name: "other", memory: 2.5 * GI });
    await node.run(29_000);
    assert.deepEqual(node.names, ["stuck"]);
    await node.run(4000);
    assert.deepEqual(node.names, ["stuck", "other"]);
  });

  test("a condition of before the start stays for its transition period, and costs no pod", async () => {
    const node = new FakeNode().add({ name: "a", memory: GI });
    assert.equal(node.loop.inherit(["Ready"]), false);
    assert.equal(node.loop.inherit(["MemoryPressure", "Ready"]), true);
    assert.deepEqual(node.pressure.current, ["MemoryPressure"], "before anything was measured");
    await node.run(59_000);
    assert.deepEqual(node.pressure.current, ["MemoryPressure"]);
    await node.run(3000);
    assert.deepEqual([node.pressure.current, node.names], [[], []]);
  });

  test("the end of a condition that was taken over is not missed, however far all signals are", async () => {
    const node = new FakeNode({ evictionHard: { "nodefs.available": "1Gi" } }, { transitionMs: 3000 });
    await node.run(500);
    node.loop.inherit(["DiskPressure"]);
    await node.run(4100);
    assert.deepEqual(node.pressure.current, []);
  });

  test("a condition that is observed already is not replaced by an older one", async () => {
    const node = new FakeNode().add({ name: "static", memory: 7.5 * GI, isStatic: true });
    await node.run(2000);
    node.loop.inherit(["DiskPressure", "MemoryPressure"]);
    assert.deepEqual(node.pressure.current, ["MemoryPressure", "DiskPressure"]);
    await node.run(70_000);
    assert.deepEqual(node.pressure.current, ["MemoryPressure"]);
  });

  test("critical pods are never evicted; the attempt is repeated every 10 s", async () => {
    const node = new FakeNode().add({ name: "static", memory: 7.5 * GI, isStatic: true });
    await node.run(25_000);
    assert.deepEqual(node.names, []);
    assert.deepEqual(node.events.length, 3);
    node.add({ name: "new", memory: MI });
    await node.run(10_000);
    assert.deepEqual(node.names, ["new"]);
  });

  test("a node that is short when the agent starts: pods are evicted as soon as they are known", async () => {
    const node = new FakeNode({ evictionHard: { "memory.available": "9Gi" } });
    await node.run(3000);
    node.add({ name: "found", memory: GI });
    await node.run(1200);
    assert.deepEqual(node.names, ["found"]);
  });

  test("a hard threshold does not wait for the grace period of a pod that a soft one evicts", async () => {
    const settings = {
      evictionHard: { "memory.available": "512Mi" },
      evictionSoft: { "memory.available": "2Gi" },
      evictionSoftGracePeriod: { "memory.available": "5s" },
    };
    const node = new FakeNode(settings, { maxPodGraceSeconds: 600 });
    node.add({ name: "slow", memory: 5 * GI, grace: 600, usesGrace: true }, { name: "other", memory: 1.5 * GI });
    await node.run(60_000);
    assert.deepEqual(
      node.stopped.map(({ name, graceSeconds }) => `${name} ${graceSeconds}`),
      ["slow 600"],
    );
    node.add({ name: "slow", memory: 6.25 * GI, grace: 600, usesGrace: true });
    await node.run(900);
    assert.deepEqual(
      node.stopped.map(({ name, graceSeconds }) => `${name} ${graceSeconds}`),
      ["slow 600", "slow 1"],
    );
    assert.equal(node.stopped[0]?.message, node.stopped[1]?.message);
    await node.run(20_000);
    assert.deepEqual(node.names, ["slow", "slow"], "its end was enough");
  });

  test("a pod that does not end although it is hurried is given up half a minute later, and the next one goes", async () => {
    const settings = {
      evictionHard: { "memory.available": "512Mi" },
      evictionSoft: { "memory.available": "2Gi" },
      evictionSoftGracePeriod: { "memory.available": "5s" },
    };
    const node = new FakeNode(settings, { maxPodGraceSeconds: 600 });
    node.add({ name: "stuck", memory: 5.5 * GI, grace: 600, endsAfterMs: 1e9 }, { name: "other", memory: GI });
    await node.run(10_000);
    node.add({ name: "stuck", memory: 6.75 * GI, grace: 600, endsAfterMs: 1e9 });
    await node.run(34_000);
    assert.deepEqual(node.names, ["stuck", "stuck", "other"]);
  });

  test("a pod that frees its memory within the grace period of a soft threshold is not evicted", async () => {
    const soft = {
      evictionSoft: { "memory.available": "1Gi" },
      evictionSoftGracePeriod: { "memory.available": "5s" },
    };
    const node = new FakeNode(soft).add({ name: "a", memory: 7.5 * GI });
    await node.run(4000);
    assert.deepEqual(node.pressure.current, ["MemoryPressure"]);
    node.add({ name: "a", memory: GI });
    await node.run(20_000);
    assert.deepEqual(node.names, []);
  });

  const graces = [
    { name: "the pod's own if it is shorter", most: 60, own: 7, want: 7 },
    { name: "the configured maximum", most: 5, own: 30, want: 5 },
    { name: "a negative maximum means the pod's own", most: -1, own: 30, want: 30 },
  ];
  for (const { name, most, own, want } of graces) {
    test(`grace period of a soft eviction: ${name}`, async () => {
      const soft = {
        evictionSoft: { "memory.available": "1Gi" },
        evictionSoftGracePeriod: { "memory.available": "2s" },
      };
      const node = new FakeNode(soft, { maxPodGraceSeconds: most });
      node.add({ name: "a", memory: 7.5 * GI, grace: own });
      await node.run(3000);
      assert.deepEqual(
        node.stopped.map(({ graceSeconds }) => graceSeconds),
        [want],
      );
    });
  }

  test("the condition falls after the transition period", async () => {
    const node = new FakeNode().add({ name: "hog", memory: 7.5 * GI });
    await node.run(30_000);
    assert.deepEqual([node.names, node.pressure.current], [["hog"], ["MemoryPressure"]]);
    await node.run(35_000);
    assert.deepEqual(node.pressure.current, []);
  });

  test("changed settings count at once", async () => {
    const node = new FakeNode().add({ name: "a", memory: GI });
    await node.run(3000);
    const thresholds = new FakeNode({ evictionHard: { "memory.available": "7500Mi" } }).options.current.thresholds;
    node.options.set({ ...node.options.current, thresholds });
    await node.run(200);
    assert.deepEqual(node.names, ["a"]);
  });
});

test("a shortage that went by while the pods were measured does not delay the answer to the next one", async () => {
  const node = new FakeNode().add({ name: "hog", memory: 7.5 * GI });
  node.onMeasure = async () => void node.add({ name: "hog", memory: GI });
  await node.run(500);
  node.onMeasure = () => Promise.resolve();
  node.add({ name: "hog", memory: 7.5 * GI });
  await node.run(1500);
  assert.deepEqual(node.names, ["hog"]);
});

test("disks are not measured for an eviction because of memory", async () => {
  const node = await new FakeNode().add({ name: "hog", memory: 7.5 * GI }).run(500);
  assert.deepEqual([node.names, node.diskTimes], [["hog"], [0]]);
});

test("an explanation has the trend of each signal", async () => {
  const node = await new FakeNode().add({ name: "a", memory: GI }).run(3000);
  node.add({ name: "a", memory: 2 * GI });
  await node.run(2000);
  const { signals } = await node.loop.explain({ signal: new AbortController().signal });
  assert.ok((signals.find(({ signal }) => signal === "memory.available")?.perSecond ?? 0) < 0);
});

test("a failure that is not one of the machine's ends the loop", async () => {
  const node = new FakeNode().add({ name: "hog", memory: 7.5 * GI });
  node.onMeasure = () => Promise.reject(new Error("a bug"));
  const ended = assert.rejects(node.start(), /a bug/);
  await node.run(1000);
  await ended;
});

describe("disk", () => {
  const settings = { evictionHard: { "nodefs.available": "10Gi", "memory.available": "1Gi" } };

  test("what the node itself keeps is reclaimed first; if that is enough, nobody is evicted", async () => {
    const node = new FakeNode(settings).add({ name: "a", memory: GI });
    node.disk = 5 * GI;
    node.onReclaim = async () => {
      node.disk = 20 * GI;
    };
    await node.run(5000);
    assert.deepEqual([node.reclaimed, node.names], [["containers", "images"], []]);
    assert.deepEqual(node.pressure.current, ["DiskPressure"]);
    assert.deepEqual(node.diskTimes, [], "nor are pods measured");
  });

  test("disk goes on being relieved while memory is short and nobody can be evicted for it", async () => {
    const node = new FakeNode(settings, {}).add({ name: "static", memory: 7.5 * GI, isStatic: true });
    await node.run(3000);
    node.disk = 5 * GI;
    node.add({ name: "small", memory: MI });
    await node.run(4000);
    assert.deepEqual(node.reclaimed.slice(0, 2), ["containers", "images"]);
    assert.deepEqual(node.names, ["small"]);
    assert.match(node.stopped[0]?.message ?? "", /^The node was low on resource: ephemeral-storage\. /);
  });

  test("if it is not enough, a pod is evicted", async () => {
    const node = new FakeNode(settings).add({ name: "a", memory: GI }, { name: "b", memory: 2 * GI });
    node.disk = 5 * GI;
    await node.run(900);
    assert.deepEqual(node.names, ["b"]);
    assert.match(node.stopped[0]?.message ?? "", /^The node was low on resource: ephemeral-storage\. /);
  });

  test("what the node itself kept is enough only with the minimum reclaim", async () => {
    const node = new FakeNode({ ...settings, evictionMinimumReclaim: { "nodefs.available": "5Gi" } });
    node.add({ name: "a", memory: GI });
    node.disk = 5 * GI;
    node.onReclaim = async () => {
      node.disk = 12 * GI;
    };
    await node.run(900);
    assert.deepEqual(node.names, ["a"]);
  });

  test("the age of the measurement that an eviction is based on is told in seconds", async () => {
    const node = new FakeNode(settings).add({ name: "a", memory: GI });
    [node.disk, node.diskAgeMs] = [5 * GI, 2000];
    await node.run(900);
    assert.ok(node.ages.includes("nodefs.available 2"), node.ages.join());
  });

  test("filesystems are asked seldom while there is much space, and often near a threshold", async () => {
    const node = await new FakeNode(settings).add({ name: "a", memory: GI }).run(3000);
    assert.deepEqual([node.spaceAges.at(0), node.spaceAges.at(-1)], [0, 10_000]);
    node.disk = 11 * GI;
    await node.run(15_000);
    assert.equal(node.spaceAges.at(-1), 1000);
  });

  test("pods above their own limits go before anything else is done", async () => {
    const node = new FakeNode(settings).add({ name: "a", memory: GI });
    node.disk = 5 * GI;
    node.overLimits = true;
    await node.run(500);
    assert.deepEqual([node.reclaimed, node.names], [[], []]);
  });

  test("memory is watched while images are removed", async () => {
    const node = new FakeNode(settings).add({ name: "hog", memory: GI }, { name: "b", memory: MI });
    node.disk = 5 * GI;
    node.onReclaim = () => node.clock.sleep(60_000);
    await node.run(5000);
    assert.deepEqual(node.names, []);
    node.add({ name: "hog", memory: 7.5 * GI });
    await node.run(1100);
    assert.deepEqual(node.names, ["hog"]);
  });

  test("what was freed while the pods were measured counts, and pods that ended meanwhile are not evicted", async () => {
    const node = new FakeNode(settings).add({ name: "a", memory: GI }, { name: "b", memory: 2 * GI });
    node.disk = 5 * GI;
    node.onMeasure = async () => {
      await node.clock.sleep(3000);
      node.disk = 20 * GI;
    };
    await node.run(8000);
    assert.deepEqual(node.names, []);
    node.disk = 5 * GI;
    node.onMeasure = async () => void node.pods.delete("b");
    await node.run(5000);
    assert.deepEqual(node.names, ["a"]);
  });

  test("bytes that were reclaimed are not evicted for: the pod with most inodes goes if those are still short", async () => {
    const node = new FakeNode({ evictionHard: { "nodefs.available": "10Gi", "nodefs.inodesFree": "1000" } });
    node.add({ name: "large", memory: 2 * GI }, { name: "many", memory: MI, inodes: 5000 });
    [node.disk, node.inodes, node.inodesFree] = [5 * GI, 10_000, 10];
    node.onReclaim = async () => {
      node.disk = 20 * GI;
    };
    await node.run(900);
    assert.deepEqual(node.names, ["many"]);
    assert.match(node.stopped[0]?.message ?? "", /^The node was low on resource: inodes\. /);
  });

  test("the containers of an evicted pod are removed before the disk is measured again", async () => {
    const node = new FakeNode(settings).add({ name: "layers", memory: 2 * GI }, { name: "other", memory: GI });
    node.disk = 5 * GI;
    node.onDiscard = () => {
      node.disk = 20 * GI;
    };
    await node.run(20_000);
    assert.deepEqual(node.names, ["layers"]);
  });

  test("a failed garbage collection does not keep pods from being evicted", async () => {
    const node = new FakeNode(settings).add({ name: "a", memory: GI });
    node.disk = 5 * GI;
    node.onReclaim = () => Promise.reject(new Error("runtime is gone"));
    await node.run(900);
    assert.deepEqual(node.names, ["a"]);
  });
});

test("an explanation ranks without evicting, and shows the last evictions", async () => {
  const node = new FakeNode();
  node.add({ name: "a", memory: GI, request: "512Mi" }, { name: "static", memory: 2 * GI, isStatic: true });
  await node.run(2000);
  const { signal } = new AbortController();
  const { signals, rankings, conditions, evictions } = await node.loop.explain({ signal });
  const memory = signals.find((one) => one.signal === "memory.available");
  assert.deepEqual(memory?.thresholds, [{ kind: "hard", value: GI, graceMs: 0 }]);
  assert.equal(memory?.available, 5 * GI);
  assert.deepEqual(
    rankings[0]?.pods.map(({ name, why }) => `${name}: ${why}`),
    ["static: critical, never evicted", "a: exceeds its request by 512Mi"],
  );
  assert.deepEqual([conditions, evictions, node.names], [[], [], []]);
});

test("an explanation tells soft thresholds from hard ones, and how long one is met", async () => {
  const settings = {
    evictionSoft: { "memory.available": "2Gi" },
    evictionSoftGracePeriod: { "memory.available": "60s" },
  };
  const node = new FakeNode(settings).add({ name: "a", memory: 5 * GI });
  await node.run(5000);
  node.add({ name: "a", memory: 7 * GI });
  await node.run(10_000);
  const { signals } = await node.loop.explain({ signal: new AbortController().signal });
  const [threshold] = signals.find((one) => one.signal === "memory.available")?.thresholds ?? [];
  assert.deepEqual([threshold?.kind, threshold?.graceMs], ["soft", 60_000]);
  const { metForMs = 0 } = threshold ?? {};
  assert.ok(metForMs >= 9000 && metForMs <= 10_000, `${metForMs} ms`);
});
