import assert from "node:assert/strict";
import { test } from "node:test";
import type { CgroupDetails } from "../model/usage.ts";
import { podDetails } from "./pod-details.ts";
import type { PodSample } from "./samples.ts";

const disk = (read: number, written: number) => ({
  device: "vda",
  major: 1,
  minor: 0,
  bytes: { Read: read, Write: written },
  operations: {},
});

function details(more: object): CgroupDetails {
  // reason: only what the page shows
  return { disks: [disk(1, 2), disk(10, 20)], oomKills: 3, ...more } as unknown as CgroupDetails;
}

function shown(of: CgroupDetails | undefined): unknown {
  const containers = [{ id: "1", name: "main", cgroup: "/a", image: "i", startedAt: 0, usage: {} }];
  return podDetails({ containers } as unknown as PodSample, () => of); // reason: only containers are read
}

const counters = { name: "main", readBytes: 11, writtenBytes: 22, oomKills: 3 };

test("counters of a container: disks together, its limit in cores, its processes", () => {
  const cpu = { quota: 150_000, period: 100_000, throttledNanos: 5 };
  const processes = { processes: 4, descriptors: 5, sockets: 6, threads: 7 };
  assert.deepEqual(shown(details({ cpu, processes })), [
    { ...counters, throttledNanos: 5, cpuLimitCores: 1.5, processes: 4, descriptors: 5, sockets: 6 },
  ]);
});

test("a container without a limit has none, whichever way the kernel says so", () => {
  for (const cpu of [
    { period: 100_000 },
    { quota: 0, period: 100_000 },
    { quota: -1, period: 1 },
    { quota: 5, period: 0 },
  ])
    assert.deepEqual(shown(details({ cpu: { throttledNanos: 0, ...cpu } })), [{ ...counters, throttledNanos: 0 }]);
  assert.deepEqual(shown(details({})), [{ ...counters, throttledNanos: 0 }]);
});

test("a container whose cgroup is gone is missing, and so is a pod that nobody knows", () => {
  assert.deepEqual(shown(undefined), []);
  assert.deepEqual(
    podDetails(undefined, () => details({})),
    [],
  );
});
