import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Pod, Volume } from "../model/generated/types.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import { PodStorageReader } from "./pod-storage-reader.ts";
import type { PodSample } from "./samples.ts";
import { declareStorageMetrics } from "./storage-metrics.ts";

const never = new AbortController().signal;
const space = { device: 1, capacityBytes: 100, availableBytes: 60, usedBytes: 30, inodes: 10, inodesFree: 4 };
const measured: PodStorage = {
  parts: [
    { kind: "log", name: "app", isMemory: false, usage: { bytes: 7, inodes: 1, at: 0, by: "walk" } },
    { kind: "volume", name: "disk", isMemory: true, path: "/v/disk", claim: "data" },
  ],
  bytes: 7,
  inodes: 1,
  isFresh: true,
};

function site(maxAgeMs = 60_000) {
  const clock = new FakeClock();
  const statted: string[] = [];
  const now: { stored: PodStorage; pods: string[]; remote: typeof space | undefined; volumes: Volume[] } = {
    stored: measured,
    pods: ["web"],
    remote: undefined,
    volumes: [],
  };
  let reads = 0;
  const asked: { pods: readonly Pod[]; maxAgeMs: number | undefined }[] = [];
  const reader = new PodStorageReader({
    clock,
    storage: {
      read: async (pods, { maxAgeMs: age }) => {
        reads++;
        asked.push({ pods, maxAgeMs: age });
        return new Map(now.pods.map((name) => [`uid-of-${name}`, now.stored]));
      },
    },
    space: async (path) => {
      statted.push(path);
      return space;
    },
    remoteSpace: async (path) => {
      statted.push(`child ${path}`);
      return now.remote;
    },
    driverSpace: async (path, { maxAgeMs: age }) => {
      statted.push(`driver ${path} ${age}`);
      return { ...space, inodesUsed: 3 };
    },
    pods: () =>
      now.pods.map((name) => {
        const built = pod(name, `uid-of-${name}`).container("app").build();
        return { ...built, spec: { ...built.spec, volumes: now.volumes } };
      }),
    maxAgeMs: () => maxAgeMs,
  });
  return { clock, reader, statted, now, asked, reads: () => reads };
}

test("who reads later gets the last measurement, and one measurement at a time is begun for the next", async () => {
  const { clock, reader, reads } = site(0);
  assert.equal(reader.readLater(never).size, 0);
  reader.readLater(never);
  await clock.advance(0);
  assert.equal(reads(), 1);
  assert.equal(reader.readLater(never).size, 1);
  await clock.advance(0);
  assert.equal(reads(), 2);
});

test("the filesystem of a server is asked by a child process, and again until it answers", async () => {
  const { clock, reader, statted, now } = site();
  const far = { kind: "volume", name: "far", isMemory: true, path: "/v/far", isRemote: true } as const;
  now.stored = { ...measured, parts: [far] };
  await reader.read({ signal: never });
  assert.equal(reader.spaceAt("/v/far"), undefined);
  now.remote = space;
  for (const _ of [1, 2]) {
    await clock.advance(10_000);
    await reader.read({ signal: never });
  }
  assert.deepEqual(statted, ["child /v/far", "child /v/far"]);
  assert.equal(reader.spaceAt("/v/far"), space);
});

test("the driver of a volume decides itself how old its answer is", async () => {
  const { clock, reader, statted, now } = site();
  const disk = { kind: "volume", name: "disk", isMemory: true, path: "/v/disk", hasDriver: true } as const;
  now.stored = { ...measured, parts: [disk] };
  await reader.read({ signal: never });
  await clock.advance(10_000);
  await reader.read({ signal: never });
  assert.deepEqual(statted, ["driver /v/disk 60000", "driver /v/disk 60000"]);
  assert.equal(reader.spaceAt("/v/disk")?.inodesUsed, 3);
});

test("the filesystems of volumes are read once a period", async () => {
  const { clock, reader, statted } = site();
  await reader.read({ signal: never });
  await reader.read({ signal: never });
  assert.deepEqual(statted, ["/v/disk"]);
  await clock.advance(60_000);
  await reader.read({ signal: never });
  assert.deepEqual(statted, ["/v/disk", "/v/disk"]);
  assert.equal(reader.spaceAt("/v/disk"), space);
  assert.equal(reader.spaceAt("/v/other"), undefined);
});

test("what is complete is not asked for again within ten seconds, but for other pods", async () => {
  const { clock, reader, now, reads } = site();
  const first = await reader.read({ signal: never });
  await clock.advance(9000);
  assert.equal(await reader.read({ signal: never }), first, "the same object");
  assert.equal(reads(), 1);
  now.pods.push("late");
  assert.equal((await reader.read({ signal: never })).size, 2);
  await clock.advance(10_000);
  await reader.read({ signal: never });
  assert.equal(reads(), 3);
});

test("what is incomplete is asked for again at once, and so is all within a shorter period", async () => {
  const slow = site();
  slow.now.stored = { ...measured, isFresh: false };
  await slow.reader.read({ signal: never });
  await slow.reader.read({ signal: never });
  assert.equal(slow.reads(), 2);
  const short = site(2000);
  await short.reader.read({ signal: never });
  await short.clock.advance(2000);
  await short.reader.read({ signal: never });
  assert.equal(short.reads(), 2);
});

test("a negative period measures no volumes; logs and writable layers are measured all the same", async () => {
  const { reader, now, asked, clock } = site(-1);
  now.volumes = [{ name: "data", emptyDir: {} }];
  const found = await reader.read({ signal: never });
  assert.equal(found.get("uid-of-web")?.bytes, 7);
  await clock.advance(1000);
  assert.equal(await reader.read({ signal: never }), found);
  assert.deepEqual(
    asked.map(({ pods, maxAgeMs }) => [pods.flatMap(({ spec }) => spec.volumes ?? []), maxAgeMs]),
    [[[], 60_000]],
  );
});

test("a scrape shows what was measured last and has it measured for the next one", async () => {
  const { clock, reader, reads } = site();
  const metrics = new Metrics();
  const web = { name: "web", namespace: "shop" } as PodSample;
  declareStorageMetrics(metrics, "cadvisor", {
    pods: () => new Map([["uid-of-web", web]]),
    storage: () => reader.readLater(never),
    spaceAt: (path) => reader.spaceAt(path),
  });
  const page = async (): Promise<string[]> =>
    (await metrics.expose()).body.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.deepEqual(await page(), ['kubelet_metrics_provider{provider="cadvisor"} 1']);
  await clock.advance(0);
  assert.equal(reads(), 1, "one read for all families of a page");
  assert.deepEqual(await page(), [
    'kubelet_metrics_provider{provider="cadvisor"} 1',
    'kubelet_container_log_filesystem_used_bytes{uid="uid-of-web",namespace="shop",pod="web",container="app"} 7',
    'kubelet_volume_stats_capacity_bytes{namespace="shop",persistentvolumeclaim="data"} 100',
    'kubelet_volume_stats_available_bytes{namespace="shop",persistentvolumeclaim="data"} 60',
    'kubelet_volume_stats_used_bytes{namespace="shop",persistentvolumeclaim="data"} 30',
    'kubelet_volume_stats_inodes{namespace="shop",persistentvolumeclaim="data"} 10',
    'kubelet_volume_stats_inodes_free{namespace="shop",persistentvolumeclaim="data"} 4',
    'kubelet_volume_stats_inodes_used{namespace="shop",persistentvolumeclaim="data"} 6',
  ]);
});

test("the health of a claim is a metric if its driver reports it", async () => {
  const metrics = new Metrics();
  const parts = ["well", "sick", "mute"].map(
    (name) => ({ kind: "volume", name, isMemory: true, path: `/v/${name}`, claim: name, hasDriver: true }) as const,
  );
  declareStorageMetrics(metrics, "cadvisor", {
    pods: () => new Map([["u", { name: "web", namespace: "shop" } as PodSample]]),
    storage: () => new Map([["u", { ...measured, parts }]]),
    spaceAt: (path) =>
      path === "/v/mute" ? space : { ...space, condition: { isAbnormal: path === "/v/sick", message: "" } },
  });
  const { body } = await metrics.expose((name) => name.endsWith("abnormal"));
  assert.deepEqual(
    body.split("\n").filter((line) => line.startsWith("kubelet")),
    [
      'kubelet_volume_stats_health_status_abnormal{namespace="shop",persistentvolumeclaim="well"} 0',
      'kubelet_volume_stats_health_status_abnormal{namespace="shop",persistentvolumeclaim="sick"} 1',
    ],
  );
});
