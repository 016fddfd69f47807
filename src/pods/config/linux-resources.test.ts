import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { ResourceRequirements } from "../../model/generated/types.ts";
import { containerResources } from "./linux-resources.ts";

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
];

describe("a container's limits for the runtime", () => {
  for (const { name, resources, pod: ofPod, want } of cases) {
    test(name, () => {
      const of = pod()
        .container("app", { resources })
        .with(ofPod === undefined ? {} : { resources: ofPod })
        .build();
      const container = of.spec.containers[0] ?? { name: "" };
      assert.deepEqual(containerResources(of, container, { memoryCapacity: GIB }), want);
    });
  }
});
