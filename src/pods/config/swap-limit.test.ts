import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { PodSpec, ResourceRequirements } from "../../model/generated/types.ts";
import { type SwapFacts, swapLimit } from "./swap-limit.ts";

const MIB = 2 ** 20;
const FACTS: SwapFacts = { memoryCapacity: 1000 * MIB, swapBytes: 500 * MIB };
const quarter: ResourceRequirements = { requests: { memory: "250Mi" } };
const same = { memory: "250Mi", cpu: "1" };

interface Row {
  readonly name: string;
  readonly resources: ResourceRequirements;
  readonly spec?: Partial<PodSpec>;
  readonly facts?: Partial<SwapFacts>;
  readonly want: number;
}

const rows: Row[] = [
  { name: "the node's swap in the proportion of the request", resources: quarter, want: 125 * MIB },
  {
    name: "whatever the limit is",
    resources: { ...quarter, limits: { memory: "900Mi" } },
    want: 125 * MIB,
  },
  { name: "none unless it is allowed", resources: quarter, facts: { swapBytes: undefined }, want: 0 },
  { name: "none for best effort", resources: {}, want: 0 },
  { name: "none for guaranteed", resources: { requests: same, limits: same }, want: 0 },
  {
    name: "none where the request is the limit",
    resources: { requests: { memory: "250Mi" }, limits: { memory: "250Mi" } },
    want: 0,
  },
  { name: "none without a memory request", resources: { requests: { cpu: "1" } }, want: 0 },
  { name: "none for a critical pod", resources: quarter, spec: { priority: 2_000_000_000 }, want: 0 },
  { name: "none for a request that the node does not have", resources: { requests: { memory: "2Gi" } }, want: 0 },
  { name: "none of no swap", resources: quarter, facts: { swapBytes: 0 }, want: 0 },
];

describe("the swap of a container", () => {
  for (const { name, resources, spec = {}, facts, want } of rows) {
    test(name, () => {
      const of = pod().container("app", { resources }).with(spec).build();
      assert.equal(swapLimit(of, of.spec.containers[0] ?? { name: "" }, { ...FACTS, ...facts }), want);
    });
  }
});
