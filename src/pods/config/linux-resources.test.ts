import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../test/support/limits.ts";
import { pod } from "../../../test/support/pods.ts";
import type { ResourceRequirements } from "../../model/generated/types.ts";
import { containerResources, type LimitFacts, resizedResources, sandboxResources } from "./linux-resources.ts";

const GIB = 2 ** 30;
const full = { cpu: "500m", memory: "256Mi" };

const cases: { name: string; resources: ResourceRequirements; pod?: ResourceRequirements; want: object }[] = [
  {
    name: "nothing asked: the least share, no limit, the first to go",
    resources: {},
    want: { cpuShares: 2, cpuPeriod: 100_000, cpuQuota: 0, oomScoreAdj: 1000 },
  },
  {
    name: "all of it equal: protected",
    resources: { limits: full, requests: full },
    want: { cpuShares: 512, cpuPeriod: 100_000, cpuQuota: 50_000, oomScoreAdj: -997, memoryLimitBytes: 256 * 2 ** 20 },
  },
  {
    name: "a limit alone also gives the share",
    resources: { limits: { cpu: "2" } },
    want: { cpuShares: 2048, cpuPeriod: 100_000, cpuQuota: 200_000, oomScoreAdj: 999 },
  },
  {
    name: "the quota is never below 1 ms",
    resources: { limits: { cpu: "1m" } },
    want: { cpuShares: 2, cpuPeriod: 100_000, cpuQuota: 1000, oomScoreAdj: 999 },
  },
  {
    name: "a quarter of the node's memory asked: a quarter less likely to go",
    resources: { requests: { memory: "256Mi" } },
    want: { cpuShares: 2, cpuPeriod: 100_000, cpuQuota: 0, oomScoreAdj: 750 },
  },
  {
    name: "the pod's memory limit holds for a container that has none",
    resources: { requests: { memory: "512Mi" } },
    pod: { limits: { memory: "768Mi" }, requests: { memory: "512Mi" } },
    want: { cpuShares: 2, cpuPeriod: 100_000, cpuQuota: 0, oomScoreAdj: 500, memoryLimitBytes: 768 * 2 ** 20 },
  },
  {
    name: "a memory limit of 0 is none",
    resources: { requests: { memory: "0" }, limits: { memory: "0" } },
    pod: { limits: { memory: "768Mi" }, requests: { memory: "512Mi" } },
    want: { cpuShares: 2, cpuPeriod: 100_000, cpuQuota: 0, oomScoreAdj: 500, memoryLimitBytes: 768 * 2 ** 20 },
  },
];

describe("a container's limits for the runtime", () => {
  for (const { name, resources, pod: ofPod, want } of cases) {
    test(name, () => {
      const of = pod()
        .container("app", { resources })
        .with(ofPod === undefined ? {} : { resources: ofPod })
        .build();
      const container = of.spec.containers[0] ?? { name: "" };
      assert.deepEqual(containerResources(of, container, { ...LIMITS, memoryCapacity: GIB }), want);
    });
  }

  const node: [string, Partial<LimitFacts>, object][] = [
    ["without CFS quotas no quota", { cpuCfsQuota: false }, { cpuShares: 512, memoryLimitBytes: 256 * 2 ** 20 }],
    [
      "another period",
      { cpuPeriodUs: 20_000 },
      { cpuShares: 512, cpuPeriod: 20_000, cpuQuota: 10_000, memoryLimitBytes: 256 * 2 ** 20 },
    ],
    [
      "swap is counted with the memory on version 1",
      { canLimitSwap: true, cpuCfsQuota: false },
      { cpuShares: 512, memoryLimitBytes: 256 * 2 ** 20, memorySwapLimitBytes: 256 * 2 ** 20 },
    ],
    [
      "on version 2 the container ends as a whole and has no swap",
      { cgroupVersion: 2, singleProcessOomKill: false, cpuCfsQuota: false, canLimitSwap: true },
      { cpuShares: 512, memoryLimitBytes: 256 * 2 ** 20, unified: { "memory.oom.group": "1", "memory.swap.max": "0" } },
    ],
    [
      "a version 2 that does not count swap has no limit of it: the runtime could not set one",
      { cgroupVersion: 2, singleProcessOomKill: true, cpuCfsQuota: false },
      { cpuShares: 512, memoryLimitBytes: 256 * 2 ** 20 },
    ],
    [
      "every page size of the kernel is limited, to 0 unless asked for",
      { hugepageSizes: ["2MB", "1GB"], cpuCfsQuota: false },
      {
        cpuShares: 512,
        memoryLimitBytes: 256 * 2 ** 20,
        hugepageLimits: [
          { pageSize: "2MB", limit: 4 * 2 ** 20 },
          { pageSize: "1GB", limit: 0 },
        ],
      },
    ],
  ];
  for (const [name, facts, want] of node) {
    test(name, () => {
      const limits = { ...full, ...(facts.hugepageSizes && { "hugepages-2Mi": "4Mi" }) };
      const of = pod()
        .container("app", { resources: { limits, requests: limits } })
        .build();
      const got = containerResources(of, of.spec.containers[0] ?? { name: "" }, { ...LIMITS, ...facts });
      assert.deepEqual(got, { oomScoreAdj: -997, ...want });
    });
  }
});

test("huge pages of the pod are each container's that names none of that size itself", () => {
  const of = pod()
    .container("own", { resources: { limits: { "hugepages-2Mi": "4Mi" } } })
    .container("any")
    .with({ resources: { limits: { "hugepages-2Mi": "16Mi", "hugepages-1Gi": "1Gi" } } })
    .build();
  const limits = of.spec.containers.map(
    (container) => containerResources(of, container, { ...LIMITS, hugepageSizes: ["2MB", "1GB"] }).hugepageLimits,
  );
  const both = (small: number) => [
    { pageSize: "2MB", limit: small * 2 ** 20 },
    { pageSize: "1GB", limit: 2 ** 30 },
  ];
  assert.deepEqual(limits, [both(4), both(16)]);
});

describe("what the runtime is told of the whole pod", () => {
  test("its sums, and its overhead apart", () => {
    const of = pod()
      .container("a", { resources: { limits: full, requests: full } })
      .container("b", { resources: { limits: full, requests: full } })
      .with({ overhead: { cpu: "250m", memory: "64Mi" } })
      .build();
    assert.deepEqual(sandboxResources(of, LIMITS), {
      resources: { cpuShares: 1024, cpuPeriod: 100_000, cpuQuota: 100_000, memoryLimitBytes: 512 * 2 ** 20 },
      overhead: { cpuShares: 256, cpuPeriod: 100_000, cpuQuota: 25_000, memoryLimitBytes: 64 * 2 ** 20 },
    });
  });

  test("the limits of those containers that have one; of a resize none as soon as one has none", () => {
    const of = pod()
      .container("a", { resources: { limits: full, requests: full } })
      .container("b")
      .build();
    assert.deepEqual(sandboxResources(of, LIMITS), {
      resources: { cpuShares: 512, cpuPeriod: 100_000, cpuQuota: 50_000, memoryLimitBytes: 256 * 2 ** 20 },
    });
    assert.deepEqual(resizedResources(of, LIMITS), {
      resources: { cpuShares: 512, cpuPeriod: 100_000, cpuQuota: 0 },
    });
  });

  test("shares by its limits if nothing is requested", () => {
    const of = pod()
      .container("a", { resources: { limits: { cpu: "1" } } })
      .build();
    assert.equal(sandboxResources(of, LIMITS).resources.cpuShares, 1024);
  });
});

test("a container with CPUs of its own has no quota, and neither has its pod", () => {
  const resources = { limits: full, requests: full };
  const both = pod().container("own", { resources }).container("shares", { resources }).build();
  const node: LimitFacts = { ...LIMITS, hasExclusiveCpus: (_pod, container) => container?.name !== "shares" };
  const quotas = both.spec.containers.map((container) => containerResources(both, container, node).cpuQuota);
  assert.deepEqual([...quotas, sandboxResources(both, node).resources.cpuQuota], [-1, 50_000, -1]);
});
