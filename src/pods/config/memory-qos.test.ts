import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { ResourceRequirements } from "../../model/generated/types.ts";
import { type MemoryQosFacts, memoryQos } from "./memory-qos.ts";

const MIB = 2 ** 20;
const FACTS: MemoryQosFacts = { throttlingFactor: 0.9, isProtected: false, nodeBytes: 1000 * MIB, pageSize: 4096 };
const open = { "memory.min": "0", "memory.low": "0" };
const page = (bytes: number): string => String(Math.floor(bytes / 4096) * 4096);
const full = { memory: "100Mi", cpu: "1" };

const rows: { name: string; resources: ResourceRequirements; facts?: Partial<MemoryQosFacts>; want: object }[] = [
  {
    name: "between request and limit",
    resources: { requests: { memory: "100Mi" }, limits: { memory: "200Mi" } },
    want: { ...open, "memory.high": page(190 * MIB) },
  },
  {
    name: "whole pages",
    resources: { requests: { memory: "1" }, limits: { memory: "10001" } },
    want: { ...open, "memory.high": "8192" },
  },
  {
    name: "without a limit, between request and what the node has",
    resources: { requests: { memory: "100Mi" } },
    want: { ...open, "memory.high": page(910 * MIB) },
  },
  { name: "not below the request", resources: { requests: { memory: "2000Mi" } }, want: open },
  { name: "never with nothing between", resources: { requests: full, limits: full }, want: open },
  { name: "nothing requested", resources: {}, facts: { isProtected: true }, want: open },
  {
    name: "a guaranteed container is protected in any case",
    resources: { requests: full, limits: full },
    facts: { isProtected: true },
    want: { "memory.min": String(100 * MIB) },
  },
  {
    name: "a burstable one as far as possible",
    resources: { requests: { memory: "100Mi" }, limits: { memory: "200Mi" } },
    facts: { isProtected: true, throttlingFactor: 0.5 },
    want: { "memory.low": String(100 * MIB), "memory.high": page(150 * MIB) },
  },
];

describe("memory quality of service", () => {
  for (const { name, resources, facts, want } of rows) {
    test(name, () => {
      const of = pod().container("app", { resources }).build();
      const container = of.spec.containers[0] ?? { name: "" };
      assert.deepEqual(memoryQos(of, container, { ...FACTS, ...facts }), want);
    });
  }
});
