import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { PodSpec, ResourceRequirements } from "./generated/types.ts";
import {
  type CgroupRules,
  type CgroupValues,
  classCgroupValues,
  hugepageSize,
  nodeCgroupValues,
  pageSizeName,
  podCgroupValues,
} from "./pod-cgroup-values.ts";
import { parseResources } from "./resources.ts";

const MIB = 2 ** 20;
const full = { cpu: "500m", memory: "64Mi" };
const rules: CgroupRules = { cpuCfsQuota: true, cpuPeriodUs: 100_000, hugepageSizes: [], podPidsLimit: -1 };
const none = { quota: -1, period: 100_000 };

interface Case {
  readonly name: string;
  readonly containers: readonly ResourceRequirements[];
  readonly more?: Partial<PodSpec>;
  readonly rules?: Partial<CgroupRules>;
  readonly want: Partial<CgroupValues>;
}

const cases: Case[] = [
  { name: "best effort: the least share and no limit", containers: [{}], want: { cpuShares: 2, cpuQuota: none } },
  {
    name: "guaranteed: everything",
    containers: [
      { limits: full, requests: full },
      { limits: full, requests: full },
    ],
    want: { cpuShares: 1024, cpuQuota: { quota: 100_000, period: 100_000 }, memoryLimit: 128 * MIB },
  },
  {
    name: "a container with CPUs of its own: no quota",
    containers: [{ limits: full, requests: full }],
    rules: { hasExclusiveCpus: () => true },
    want: { cpuShares: 512, cpuQuota: none, memoryLimit: 64 * MIB },
  },
  {
    name: "burstable with limits on every container: quota and memory",
    containers: [{ limits: full, requests: { cpu: "100m" } }],
    want: { cpuShares: 102, cpuQuota: { quota: 50_000, period: 100_000 }, memoryLimit: 64 * MIB },
  },
  {
    name: "burstable with one container without limits: only the share",
    containers: [{ limits: full, requests: full }, {}],
    want: { cpuShares: 512, cpuQuota: none, memoryLimit: -1 },
  },
  {
    name: "a limit of memory alone",
    containers: [{ limits: { memory: "64Mi" }, requests: { memory: "64Mi" } }],
    want: { cpuShares: 2, cpuQuota: none, memoryLimit: 64 * MIB },
  },
  {
    name: "pod-level limits hold for containers that have none",
    containers: [{}],
    more: { resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } } },
    want: { cpuShares: 1024, cpuQuota: { quota: 100_000, period: 100_000 }, memoryLimit: 1024 * MIB },
  },
  {
    name: "overhead is added",
    containers: [{ limits: full, requests: full }],
    more: { overhead: { cpu: "250m", memory: "36Mi" } },
    want: { cpuShares: 768, cpuQuota: { quota: 75_000, period: 100_000 }, memoryLimit: 100 * MIB },
  },
  {
    name: "without CFS quotas there is none",
    containers: [{ limits: full, requests: full }],
    rules: { cpuCfsQuota: false },
    want: { cpuShares: 512, cpuQuota: none, memoryLimit: 64 * MIB },
  },
  {
    name: "the limit of processes",
    containers: [{}],
    rules: { podPidsLimit: 100 },
    want: { cpuShares: 2, cpuQuota: none, pids: 100 },
  },
  {
    name: "huge pages: what is asked for, and 0 for other sizes",
    containers: [{ limits: { ...full, "hugepages-2Mi": "8Mi" }, requests: { ...full, "hugepages-2Mi": "8Mi" } }],
    rules: { hugepageSizes: ["2MB", "1GB"] },
    want: {
      cpuShares: 512,
      cpuQuota: { quota: 50_000, period: 100_000 },
      memoryLimit: 64 * MIB,
      hugepages: { "2MB": 8 * MIB, "1GB": 0 },
    },
  },
];

describe("the values of a pod's cgroup", () => {
  for (const { name, containers, more = {}, rules: changed = {}, want } of cases) {
    test(name, () => {
      const builder = pod().with(more);
      containers.forEach((resources, i) => builder.container(`c${i}`, { resources }));
      const got = podCgroupValues(builder.build(), { ...rules, ...changed });
      assert.deepEqual(got, { memoryLimit: -1, pids: -1, hugepages: {}, ...want });
    });
  }
});

test("all pods together get what the node has for them", () => {
  const got = nodeCgroupValues(parseResources({ cpu: "1500m", memory: "2Gi" }), { pids: 999, hugepageSizes: ["2MB"] });
  assert.deepEqual(got, { cpuShares: 1536, memoryLimit: 2048 * MIB, pids: 999, hugepages: { "2MB": 0 } });
});

test("a class gets the sum of what its pods ask for, and never nothing", () => {
  const one = pod()
    .container("a", { resources: { requests: { cpu: "250m" } } })
    .build();
  assert.deepEqual(classCgroupValues([one, one]), { cpuShares: 512 });
  assert.deepEqual(classCgroupValues([]), { cpuShares: 2 });
});

for (const [resource, want] of [
  ["hugepages-2Mi", "2MB"],
  ["hugepages-1Gi", "1GB"],
  ["hugepages-64Ki", "64KB"],
  ["memory", undefined],
] as const) {
  test(`${resource} is ${want} in the kernel's files`, () => assert.equal(hugepageSize(resource), want));
}

for (const [kib, want] of [
  [2048, "2MB"],
  [1048576, "1GB"],
  [64, "64KB"],
  [32768, "32MB"],
] as const) {
  test(`${kib} KiB is ${want}`, () => assert.equal(pageSizeName(kib), want));
}
