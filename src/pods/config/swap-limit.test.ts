import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { Container, Pod, PodSpec, ResourceRequirements } from "../../model/generated/types.ts";
import { type SwapFacts, swapLimit, swapResizeProblem } from "./swap-limit.ts";

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

describe("a resize in place", () => {
  const WHY = "In-place resize of containers with swap is not supported.";
  const sized = (resources: ResourceRequirements, more: Partial<Container> = {}): Pod =>
    pod()
      .container("app", { resources, ...more })
      .container("other", { resources: { requests: { cpu: "1" } } })
      .build();
  const bytes = (memory: string): ResourceRequirements => ({ requests: { memory } });
  const fixed = (memory: string): ResourceRequirements => ({ requests: { memory }, limits: { memory } });
  const restarts = { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] };
  const cases: [string, Pod, Pod, Partial<SwapFacts>, string | undefined][] = [
    ["of a memory request with swap is infeasible", sized(bytes("2Mi")), sized(bytes("1Mi")), {}, WHY],
    ["that ends with swap is infeasible", sized(bytes("2Mi")), sized(fixed("1Mi")), {}, WHY],
    ["that begins with swap is infeasible", sized(fixed("2Mi")), sized(bytes("1Mi")), {}, WHY],
    [
      "of no swap is none of its business",
      sized(bytes("2Mi")),
      sized(bytes("1Mi")),
      { swapBytes: undefined },
      undefined,
    ],
    ["without swap on both sides is feasible", sized(fixed("2Mi")), sized(fixed("1Mi")), {}, undefined],
    [
      "of the limit alone is feasible",
      sized({ ...bytes("1Mi"), limits: { memory: "9Mi" } }),
      sized(bytes("1Mi")),
      {},
      undefined,
    ],
    [
      "that restarts the container is feasible",
      sized(bytes("2Mi"), restarts),
      sized(bytes("1Mi"), restarts),
      {},
      undefined,
    ],
  ];
  for (const [name, desired, allocated, facts, want] of cases) {
    test(name, () => assert.equal(swapResizeProblem(desired, allocated, { ...FACTS, ...facts }), want));
  }
});
