import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import { Evictions } from "./evictions.ts";
import { StorageLimits } from "./storage-limits.ts";

const MI = 2 ** 20;

function limited(name: string, sizeLimit: string | undefined, isStatic = false): Pod {
  const annotations: Record<string, string> = isStatic ? { "kubernetes.io/config.source": "file" } : {};
  const emptyDir = sizeLimit === undefined ? {} : { sizeLimit };
  return {
    metadata: { name, uid: name, annotations },
    spec: { containers: [{ name: "c", image: "i" }], volumes: [{ name: "data", emptyDir }] },
  };
}

function site(pods: readonly Pod[], { takesMs = 0, isEnabled = true } = {}) {
  const clock = new FakeClock();
  const stopped: string[] = [];
  const discarded: string[] = [];
  const measured: string[][] = [];
  const evictions = new Evictions({
    clock,
    log: silent,
    candidates: () => pods.filter(({ metadata }) => !stopped.includes(metadata.name ?? "")),
    ending: () => [],
    stop: (uid, { disruption }, grace) => {
      assert.deepEqual([disruption, grace], [undefined, 1]);
      stopped.push(uid);
    },
    isFinished: (uid) => stopped.includes(uid),
    discard: async (uid) => void discarded.push(uid),
    event: () => undefined,
    counted: () => undefined,
  });
  const limits = new StorageLimits({
    clock,
    evictions,
    layout: () => "single",
    isEnabled: () => isEnabled,
    storage: async (of, { signal }) => {
      measured.push(of.map(({ metadata }) => metadata.name ?? ""));
      if (takesMs > 0) await clock.sleep(takesMs, { signal });
      const usage = { bytes: 10 * MI, inodes: 1, at: 0, by: "walk" } as const;
      const part = { kind: "emptyDir", name: "data", isMemory: false, usage } as const;
      const storage: PodStorage = { parts: [part], bytes: 10 * MI, inodes: 1, isFresh: true };
      return new Map(of.map(({ metadata }) => [metadata.uid ?? "", storage]));
    },
  });
  return { clock, stopped, discarded, measured, limits };
}

test("pods above their limits are evicted; those without a limit are not even measured, nor static ones", async () => {
  const pods = [
    limited("over", "8Mi"),
    limited("within", "20Mi"),
    limited("free", undefined),
    limited("own", "1Mi", true),
  ];
  const { limits, stopped, measured } = site(pods);
  const { signal } = new AbortController();
  assert.equal(await limits.check({ signal }), true);
  assert.deepEqual([stopped, measured], [["over"], [["over", "within"]]]);
  assert.equal(await limits.check({ signal }), false);
});

test("a node without such limits has nothing to measure, and nobody was evicted", async () => {
  const { limits, measured } = site([limited("free", undefined)]);
  assert.equal(await limits.check(new AbortController()), false);
  assert.deepEqual(measured, []);
});

test("a pod that was evicted by somebody else while it was measured is not evicted twice", async () => {
  const { limits, clock, stopped } = site([limited("over", "8Mi")], { takesMs: 1000 });
  const checked = limits.check(new AbortController());
  await clock.advance(500);
  stopped.push("over");
  await clock.advance(1000);
  assert.deepEqual([await checked, stopped], [false, ["over"]]);
});

test("the containers of a pod above its limits are removed, or their logs and layers would stay", async () => {
  const { limits, discarded } = site([limited("over", "8Mi")]);
  await limits.check(new AbortController());
  assert.deepEqual(discarded, ["over"]);
});

test("a check that is under way is shared", async () => {
  const { limits, clock, stopped, measured } = site([limited("over", "8Mi")], { takesMs: 1000 });
  const both = Promise.all([limits.check(new AbortController()), limits.check(new AbortController())]);
  await clock.advance(1500);
  assert.deepEqual([await both, stopped, measured.length], [[true, true], ["over"], 1]);
});

test("nothing is checked where local storage is not isolated", async () => {
  const { limits, measured } = site([limited("over", "8Mi")], { isEnabled: false });
  assert.equal(await limits.check(new AbortController()), false);
  assert.deepEqual(measured, []);
});

test("pods are measured every 10 s, and less often where it takes long", async () => {
  for (const { takesMs, want } of [
    { takesMs: 0, want: 7 },
    { takesMs: 3000, want: 2 },
  ]) {
    const { limits, clock, measured } = site([limited("within", "20Mi")], { takesMs });
    const stop = new AbortController();
    const running = limits.run(stop.signal);
    await clock.advance(60_000);
    assert.equal(measured.length, want);
    stop.abort();
    await running.catch(() => undefined);
  }
});

test("however long measuring takes, the next check is at most a minute away", async () => {
  const { clock, limits, measured } = site([limited("within", "20Mi")], { takesMs: 10_000 });
  const stop = new AbortController();
  const running = limits.run(stop.signal).catch(() => undefined);
  await clock.advance(10_000);
  await clock.advance(60_000);
  assert.equal(measured.length, 2);
  stop.abort();
  await running;
});
