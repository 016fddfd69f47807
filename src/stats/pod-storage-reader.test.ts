import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
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
  let reads = 0;
  const reader = new PodStorageReader({
    clock,
    storage: {
      read: async () => {
        reads++;
        return new Map([["uid-of-web", measured]]);
      },
    },
    space: async (path) => {
      statted.push(path);
      return space;
    },
    pods: () => [pod("web").container("app").build()],
    maxAgeMs: () => maxAgeMs,
  });
  return { clock, reader, statted, reads: () => reads };
}

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

test("a negative period measures nothing", async () => {
  const { reader, reads } = site(-1);
  assert.equal((await reader.read({ signal: never })).size, 0);
  assert.equal(reads(), 0);
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
