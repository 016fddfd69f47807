import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeExplanation } from "../model/node-pressure.ts";
import { renderNode } from "./render-node.ts";

const GI = 2 ** 30;
const how = { now: 1_000_000, color: false, columns: 100 };

const node: NodeExplanation = {
  node: "n1",
  conditions: ["MemoryPressure"],
  signals: [
    {
      signal: "memory.available",
      unit: "bytes",
      available: GI / 2,
      capacity: 8 * GI,
      perSecond: -20 * 2 ** 20,
      thresholds: [
        { kind: "hard", value: GI, graceMs: 0, metForMs: 3000 },
        { kind: "soft", value: 2 * GI, graceMs: 30_000 },
      ],
    },
    { signal: "pid.available", unit: "count", available: 31_000, capacity: 32_768, thresholds: [] },
  ],
  unmeasured: ["imagefs.inodesFree"],
  rankings: [
    {
      resource: "memory",
      unit: "bytes",
      pods: [
        {
          uid: "1",
          name: "hog",
          namespace: "a",
          priority: 0,
          usage: 6 * GI,
          request: 0,
          why: "exceeds its request by 6Gi",
        },
        { uid: "2", name: "dns", namespace: "b", priority: 2e9, request: 0, why: "critical, never evicted" },
      ],
    },
    { resource: "pids", unit: "count", pods: [] },
  ],
  evictions: [
    {
      at: 990_000,
      pod: { uid: "3", name: "old", namespace: "a" },
      signal: "memory.available",
      message: "The node was low on resource: memory. ",
    },
  ],
};

test("the node: pressure, signals with trend and thresholds, the order of eviction, and what was evicted", () => {
  assert.equal(
    renderNode(node, how),
    `Node       n1
Pressure   MemoryPressure

Signals
  memory.available   512Mi   of 8.0Gi   -20Mi/s   hard below 1.0Gi (met for 3s), soft below 2.0Gi for 30s
  pid.available      31000   of 32768   steady    no threshold
  imagefs.inodesFree   not measured: its thresholds are not acted on

If memory were short
  1.   a/hog   priority 0            6.0Gi   exceeds its request by 6Gi
  2.   b/dns   priority 2000000000           critical, never evicted

Evictions
  10s   a/old   memory.available   The node was low on resource: memory.
`,
  );
});
