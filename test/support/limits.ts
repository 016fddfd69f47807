import type { LimitFacts } from "../../src/pods/index.ts";

/** How a node limits containers, for tests: a quota each 100 ms, no huge pages, cgroup v1. */
export const LIMITS: LimitFacts = {
  memoryCapacity: 2 ** 30,
  cpuCfsQuota: true,
  cpuPeriodUs: 100_000,
  hugepageSizes: [],
  cgroupVersion: 1,
  canLimitSwap: false,
  singleProcessOomKill: true,
};
