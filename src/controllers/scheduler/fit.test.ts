import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node, Pod, PodSpec } from "../../model/generated/types.ts";
import { misfitsOf, unschedulableMessage } from "./fit.ts";

const pod = (spec: Partial<PodSpec> = {}): Pod => ({
  metadata: { name: "p" },
  spec: { containers: [{ name: "c", image: "x" }], ...spec },
});
const node = (more: Partial<Node> = {}): Node => ({
  metadata: { name: "n", labels: { disk: "ssd" } },
  spec: {},
  status: {
    allocatable: { cpu: "2", memory: "1Gi", pods: "2" },
    conditions: [{ type: "Ready", status: "True" }],
  },
  ...more,
});
const asking = (requests: Record<string, string>, hostPort?: number): Pod =>
  pod({
    containers: [
      {
        name: "c",
        image: "x",
        resources: { requests },
        ...(hostPort !== undefined && { ports: [{ containerPort: 80, hostPort }] }),
      },
    ],
  });

const cases: readonly { name: string; pod: Pod; node?: Node; others?: readonly Pod[]; want: readonly string[] }[] = [
  { name: "an empty node takes a plain pod", pod: pod(), want: [] },
  {
    name: "a node that is not ready takes none",
    pod: pod(),
    node: node({ status: { conditions: [{ type: "Ready", status: "False" }] } }),
    want: ["node(s) had untolerated taint(s)"],
  },
  {
    name: "a cordoned node takes none",
    pod: pod(),
    node: node({ spec: { unschedulable: true } }),
    want: ["node(s) were unschedulable"],
  },
  {
    name: "a taint keeps away",
    pod: pod(),
    node: node({ spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] } }),
    want: ["node(s) had untolerated taint(s)"],
  },
  {
    name: "a tolerated taint does not",
    pod: pod({ tolerations: [{ key: "gpu", operator: "Exists" }] }),
    node: node({ spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] } }),
    want: [],
  },
  {
    name: "a taint that only prefers does not",
    pod: pod(),
    node: node({ spec: { taints: [{ key: "gpu", effect: "PreferNoSchedule" }] } }),
    want: [],
  },
  {
    name: "another label",
    pod: pod({ nodeSelector: { disk: "hdd" } }),
    want: ["node(s) didn't match Pod's node affinity/selector"],
  },
  {
    name: "too little of two resources",
    pod: asking({ cpu: "3", memory: "2Gi" }),
    want: ["Insufficient cpu", "Insufficient memory"],
  },
  {
    name: "what others use counts",
    pod: asking({ cpu: "1500m" }),
    others: [asking({ cpu: "1" })],
    want: ["Insufficient cpu"],
  },
  { name: "too many pods", pod: pod(), others: [pod(), pod()], want: ["Too many pods"] },
  {
    name: "a host port that is taken",
    pod: asking({}, 8080),
    others: [asking({}, 8080)],
    want: ["node(s) didn't have free ports for the requested pod ports"],
  },
];
for (const { name, pod: wanted, node: on = node(), others = [], want } of cases) {
  test(name, () =>
    assert.deepEqual(
      misfitsOf(wanted, on, others).map(({ reason }) => reason),
      want,
    ),
  );
}

test("the message counts nodes and reasons, and says whether others would have to go", () => {
  const full = misfitsOf(asking({ cpu: "1500m" }), node(), [asking({ cpu: "1" })]);
  assert.equal(
    unschedulableMessage([full]),
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
  );
  const never = misfitsOf(asking({ cpu: "3", memory: "2Gi" }), node(), []);
  assert.equal(
    unschedulableMessage([never]),
    "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
  );
  assert.equal(unschedulableMessage([]), "no nodes available to schedule pods");
});
