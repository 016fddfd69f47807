import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, pod, sandbox } from "../../test/support/pods.ts";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import { Metrics } from "../lib/metrics.ts";
import { composeEviction, type EvictableWorker } from "./compose.ts";
import type { PressureCondition } from "./signals.ts";

const MI = 2 ** 20;

/** What the agent was started with; the file of a reload has the rest. */
const FLAGS = ["--eviction-hard=memory.available<100Mi"];

function site(
  lives: Readonly<
    Record<string, EvictableWorker["life"] & { readonly sandboxes?: readonly string[]; readonly isNew?: boolean }>
  >,
  flags: readonly string[] = FLAGS,
) {
  const clock = new FakeClock();
  const metrics = new Metrics();
  const evicted: string[] = [];
  const events: unknown[] = [];
  const limited = { resources: { limits: { "ephemeral-storage": "1Mi" } } };
  const pods = new Map(Object.keys(lives).map((uid) => [uid, pod(uid, uid).container("c", limited).build()]));
  const store = new OptionStore(agentOptions, parseAgentOptions(flags).values);
  const storageReads: object[] = [];
  const pressure = new LiveValue<readonly PressureCondition[]>([]);
  const stop = manyListeners();
  const usage = { memory: { usage: 1, workingSet: MI, rss: 0, pageFaults: 0, majorPageFaults: 0, swap: 0 } };
  const { loops, explain } = composeEviction(
    {
      clock,
      log: silent,
      metrics,
      store,
      nodeName: "n1",
      sampler: {
        signals: async () => ({ at: clock.now(), memory: { capacity: 500 * MI, workingSet: 450 * MI } }),
        sample: async () => undefined,
        pods: new Map(
          [...pods.keys()].map((uid) => [uid, { usage, cgroup: `/${uid}`, containers: [{ name: "c", usage }] }]),
        ),
      },
      storage: {
        read: async (_pods, { signal: _signal, ...options }) => {
          storageReads.push(options);
          return new Map();
        },
      },
      deletedFiles: async (cgroup) => {
        const bytes = cgroup === "/holder" ? 9 * MI : 0;
        return { node: { bytes, inodes: 0 }, layers: { bytes: 0, inodes: 0 } };
      },
      pool: {
        uids: () => [...pods.keys()],
        worker: (uid) => {
          const [of, life] = [pods.get(uid), lives[uid]];
          if (of === undefined || life === undefined) return undefined;
          const evict: EvictableWorker["evict"] = ({ reason }, grace) => void evicted.push(`${uid} ${reason} ${grace}`);
          return { allocated: of, life, isAdopted: life.isNew !== true, evict };
        },
        isFinished: (uid) => lives[uid]?.phase !== "stopping",
        discard: async () => undefined,
      },
      observer: {
        get: (uid) => {
          const of = pods.get(uid);
          const states = lives[uid]?.sandboxes ?? ["ready"];
          const all = states.map((state, at) =>
            sandbox({ id: `s${at}`, state: state === "ready" ? "ready" : "notReady" }),
          );
          return of && states.length > 0 ? observed(of, all) : undefined;
        },
      },
      journal: { of: ({ name }) => ({ event: (...event) => void events.push([name, ...event]) }) },
      event: () => undefined,
    },
    pressure,
    stop.signal,
  );
  return { clock, metrics, evicted, events, loops, explain, pressure, stop, store, storageReads };
}

const EVICTING = { failure: { reason: "Evicted", message: "" }, graceSeconds: 1 };
const OVERDUE = { failure: { reason: "DeadlineExceeded", message: "" } };
const running = { phase: "syncing", stop: undefined, isWanted: true };

test("pods of which something runs are candidates, also past their deadline or removed, unless they end at once", async () => {
  const { explain } = site({
    runs: running,
    deleted: { phase: "stopping", stop: { graceSeconds: 1 }, isWanted: true },
    failing: { phase: "stopping", stop: EVICTING, isWanted: true },
    overdue: { phase: "stopping", stop: { ...OVERDUE, graceSeconds: 86_400 }, isWanted: true },
    ending: { phase: "stopping", stop: { ...OVERDUE, graceSeconds: 1 }, isWanted: true },
    unknown: { ...running, isNew: true },
    orphan: { phase: "stopping", stop: { graceSeconds: Number.POSITIVE_INFINITY }, isWanted: false, isNew: true },
    removed: { phase: "stopping", stop: { graceSeconds: 86_400 }, isWanted: false },
    leaving: { phase: "stopping", stop: { graceSeconds: 1 }, isWanted: false },
    stopped: { ...running, phase: "stopped" },
    asleep: { ...running, sandboxes: ["notReady"] },
    again: { ...running, sandboxes: ["ready", "notReady"] },
    unseen: { ...running, sandboxes: [] },
  });
  const { rankings, node } = await explain({ signal: new AbortController().signal });
  assert.equal(node, "n1");
  assert.deepEqual(rankings[0]?.pods.map(({ name }) => name).sort(), [
    "again",
    "deleted",
    "orphan",
    "overdue",
    "removed",
    "runs",
  ]);
});

test("a pod that holds deleted files open ranks by them if disk is short", async () => {
  const { explain } = site({ a: running, holder: running });
  const { rankings } = await explain({ signal: new AbortController().signal });
  const disk = rankings.find(({ resource }) => resource === "ephemeral-storage");
  assert.deepEqual(
    disk?.pods.map(({ name, usage: used }) => `${name} ${used}`),
    ["holder 9437184", "a 0"],
  );
});

test("an eviction reaches the worker, the journal with its annotations, the condition and the metrics", async () => {
  const { clock, loops, evicted, events, pressure, metrics, stop, storageReads } = site({ hog: running });
  const all = loops.map(({ run }) => run(stop.signal).catch(() => undefined));
  await clock.advance(50);
  stop.abort();
  await clock.advance(1000);
  await Promise.all(all);
  assert.equal(evicted[0], "hog Evicted 1");
  assert.deepEqual(storageReads, [{ limitMs: 10_000 }], "what is on disk is measured for its limits, not for memory");
  assert.deepEqual(pressure.current, ["MemoryPressure"]);
  const [[name, type, reason, what] = []] = events as [string, string, string, { annotations: object }][];
  assert.deepEqual([name, type, reason], ["hog", "Warning", "Evicted"]);
  assert.deepEqual(what?.annotations, {
    offending_containers: "c",
    offending_containers_usage: "1Mi",
    starved_resource: "memory",
  });
  const page = (await metrics.expose()).body;
  assert.match(page, /^kubelet_evictions\{eviction_signal="memory.available"\} [1-9]/m);
  assert.match(page, /^kubelet_eviction_stats_age_seconds_count\{eviction_signal="memory.available"\} [1-9]/m);
});

test("nobody is evicted while a pod that an earlier agent began to evict still ends", async () => {
  const lives = {
    hog: { phase: "stopping", stop: EVICTING, isWanted: true },
    gone: { phase: "stopped", stop: EVICTING, isWanted: true },
    preempted: {
      phase: "stopping",
      stop: { failure: { reason: "Preempting", message: "" }, graceSeconds: 1 },
      isWanted: true,
    },
    other: running,
  };
  const { clock, loops, evicted, stop } = site(lives);
  const all = loops.map(({ run }) => run(stop.signal).catch(() => undefined));
  await clock.advance(20_000);
  assert.deepEqual(evicted, []);
  lives.hog.phase = "stopped";
  await clock.advance(1000);
  assert.deepEqual(evicted[0], "other Evicted 1", "what it freed did not suffice");
  stop.abort();
  await clock.advance(1000);
  await Promise.all(all);
});

test("settings follow a reload, and storage is measured anew only if it is older than 10 s", async () => {
  const { explain, store, storageReads } = site({ a: running });
  const { signal } = new AbortController();
  const thresholds = async (): Promise<unknown> =>
    (await explain({ signal })).signals.flatMap((one) => one.thresholds.map(({ value }) => value));
  assert.deepEqual(await thresholds(), [100 * MI]);
  store.update(parseAgentOptions(["--eviction-hard=memory.available<10Mi"]).values, { reload: true });
  assert.deepEqual(await thresholds(), [10 * MI]);
  assert.deepEqual((await explain({ signal })).unmeasured, ["allocatableMemory.available"]);
  const alone = ["--eviction-hard=memory.available<10Mi", "--enforce-node-allocatable=none"];
  store.update(parseAgentOptions(alone).values, { reload: true });
  assert.deepEqual((await explain({ signal })).unmeasured, []);
  assert.deepEqual(storageReads[0], { maxAgeMs: 10_000, limitMs: 1000 });
});

test("limits on local storage are checked unless local storage is not isolated", async () => {
  for (const [flag, want] of [
    ["--local-storage-capacity-isolation=true", [{ limitMs: 10_000 }]],
    ["--local-storage-capacity-isolation=false", []],
  ] as const) {
    const { clock, loops, storageReads, stop } = site({ a: running }, [flag, "--eviction-hard=memory.available<1Mi"]);
    const all = loops.map(({ run }) => run(stop.signal).catch(() => undefined));
    await clock.advance(50);
    stop.abort();
    await clock.advance(1000);
    await Promise.all(all);
    assert.deepEqual(storageReads, want);
  }
});
