import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "../../model/generated/types.ts";
import { type ExpansionFacts, type ExpansionPlan, planExpansion } from "./plan-expansion.ts";

interface Given {
  /** Of the PersistentVolume. */
  readonly volume?: string;
  readonly requested?: string;
  readonly reported?: string;
  readonly allocated?: string;
  readonly status?: string;
  readonly modes?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly readonly?: boolean;
  readonly state?: ExpansionFacts["state"];
}

function plan(given: Given, isMounting: boolean): ExpansionPlan {
  const { volume = "2Gi", requested = "2Gi", reported = "1Gi", allocated, status, modes = ["ReadWriteOnce"] } = given;
  const claim: PersistentVolumeClaim = {
    metadata: { name: "data", ...(given.annotations && { annotations: given.annotations }) },
    spec: { accessModes: modes, resources: { requests: { storage: requested } } },
    status: {
      capacity: { storage: reported },
      ...(allocated !== undefined && { allocatedResources: { storage: allocated } }),
      ...(status !== undefined && { allocatedResourceStatuses: { storage: status } }),
    },
  };
  const object: PersistentVolume = { metadata: { name: "pv-1" }, spec: { capacity: { storage: volume } } };
  const { readonly = false, state = { size: "1Gi" } } = given;
  return planExpansion({ claim, volume: object, readonly, isMounting, state });
}

const GI = 2 ** 30;
const expand = (more: Partial<ExpansionPlan & { kind: "expand" }> = {}): ExpansionPlan => ({
  kind: "expand",
  size: "2Gi",
  bytes: 2 * GI,
  hasSteps: true,
  isReported: false,
  isInfeasibleOnFailure: false,
  ...more,
});
const pending = { allocated: "2Gi", status: "NodeResizePending" };

describe("whether a volume has to grow on the node", () => {
  const cases: [string, Given, { readonly mounting: ExpansionPlan; readonly used: ExpansionPlan }][] = [
    [
      "a claim that has the size of its volume",
      { reported: "2Gi", state: { size: "2Gi" } },
      { mounting: { kind: "nothing" }, used: { kind: "nothing" } },
    ],
    [
      "a larger volume, of a controller that knows no steps",
      {},
      { mounting: expand({ hasSteps: false }), used: expand({ hasSteps: false }) },
    ],
    ["a larger volume, pending on the node", pending, { mounting: expand(), used: expand() }],
    [
      "one that an agent began with",
      { ...pending, status: "NodeResizeInProgress" },
      { mounting: expand(), used: expand() },
    ],
    [
      "one that the controller still works at",
      { ...pending, status: "ControllerResizeInProgress" },
      { mounting: { kind: "wait" }, used: { kind: "wait" } },
    ],
    [
      "one that is infeasible",
      { ...pending, status: "NodeResizeInfeasible" },
      { mounting: { kind: "wait" }, used: { kind: "wait" } },
    ],
    [
      "one that the controller has allocated less for than the volume has",
      { ...pending, allocated: "1536Mi" },
      {
        mounting: expand({ size: "1536Mi", bytes: 1.5 * GI, isInfeasibleOnFailure: false }),
        used: expand({ size: "1536Mi", bytes: 1.5 * GI }),
      },
    ],
    [
      "a status without a size: that of the volume",
      { status: "NodeResizePending" },
      { mounting: expand(), used: expand() },
    ],
    [
      "one that failed, and whose user wants another size by now",
      { ...pending, requested: "1200Mi", state: { size: "1Gi", hasFailed: true } },
      { mounting: expand({ isInfeasibleOnFailure: true }), used: expand({ isInfeasibleOnFailure: true }) },
    ],
    [
      "one that failed, and whose user still wants it",
      { ...pending, state: { size: "1Gi", hasFailed: true } },
      { mounting: expand(), used: expand() },
    ],
    [
      "one that another node has reported, or that grew without the node",
      { reported: "2Gi", allocated: "2Gi" },
      { mounting: { kind: "nothing" }, used: { kind: "done", size: "2Gi" } },
    ],
    [
      "one of many nodes that another node has reported",
      { reported: "2Gi", allocated: "2Gi", modes: ["ReadWriteMany"] },
      { mounting: { kind: "nothing" }, used: expand({ isReported: true }) },
    ],
    [
      "one of many nodes that does not have to grow on nodes",
      {
        reported: "2Gi",
        allocated: "2Gi",
        modes: ["ReadWriteMany"],
        annotations: { "volume.kubernetes.io/node-expansion-not-required": "true" },
      },
      { mounting: { kind: "nothing" }, used: { kind: "done", size: "2Gi" } },
    ],
    [
      "a pod that only reads",
      { ...pending, readonly: true },
      { mounting: { kind: "readOnly" }, used: { kind: "nothing" } },
    ],
    [
      "a driver that refuses volumes in use",
      { ...pending, state: { size: "1Gi", isRefused: true } },
      { mounting: expand(), used: { kind: "nothing" } },
    ],
    ["a size that is not known yet", { ...pending, state: {} }, { mounting: expand(), used: { kind: "nothing" } }],
    ["a size that is no quantity", { volume: "much" }, { mounting: { kind: "nothing" }, used: { kind: "nothing" } }],
  ];
  for (const [name, given, { mounting, used }] of cases) {
    test(`${name}: ${mounting.kind} when it is mounted`, () => assert.deepEqual(plan(given, true), mounting));
    test(`${name}: ${used.kind} while it is used`, () => assert.deepEqual(plan(given, false), used));
  }
});
