import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, StatefulSet, StatefulSetSpec } from "../../model/generated/types.ts";
import { planStatefulSet, type StatefulAction, statefulSetStatus } from "./stateful-plan.ts";

const set = (spec: Partial<StatefulSetSpec> = {}): StatefulSet => ({
  metadata: { name: "web" },
  spec: {
    replicas: 3,
    selector: {},
    template: {},
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    ...spec,
  },
});
type State = "ready" | "pending" | "failed" | "deleting" | "old" | "broken";
const DOWN: readonly State[] = ["pending", "failed", "broken"];
const pod = (ordinal: number, state: State): Pod => ({
  metadata: {
    name: `web-${ordinal}`,
    labels: {
      "statefulset.kubernetes.io/pod-name": `web-${ordinal}`,
      "apps.kubernetes.io/pod-index": String(ordinal),
      "controller-revision-hash": state === "old" || state === "broken" ? "web-1" : "web-2",
    },
    ...(state === "deleting" && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
  },
  spec: { containers: [] },
  status: {
    phase: state === "pending" ? "Pending" : state === "failed" ? "Failed" : "Running",
    conditions: [{ type: "Ready", status: DOWN.includes(state) ? "False" : "True" }],
  },
});
const text = (action: StatefulAction): string =>
  action.kind === "create"
    ? `create ${action.ordinal} ${action.revision}`
    : action.kind === "provide"
      ? `provide ${action.ordinal}`
      : `${action.kind} ${action.pod.metadata.name}`;

const cases: readonly {
  readonly name: string;
  readonly spec?: Partial<StatefulSetSpec>;
  readonly pods: readonly Pod[];
  readonly want: readonly string[];
}[] = [
  { name: "the first is created alone", pods: [], want: ["create 0 update"] },
  { name: "a gap is filled first", pods: [pod(0, "ready"), pod(2, "ready")], want: ["create 1 update"] },
  { name: "a pod that is not ready stops everything", pods: [pod(0, "pending")], want: ["provide 0"] },
  { name: "a failed pod is deleted", pods: [pod(0, "failed")], want: ["delete web-0"] },
  { name: "a pod that is being deleted stops everything", pods: [pod(0, "deleting"), pod(1, "old")], want: [] },
  {
    name: "in parallel all gaps are filled",
    spec: { podManagementPolicy: "Parallel" },
    pods: [pod(1, "pending")],
    want: ["create 0 update", "provide 1", "create 2 update"],
  },
  {
    name: "the highest surplus pod goes first",
    spec: { replicas: 1 },
    pods: [pod(0, "ready"), pod(1, "ready"), pod(2, "ready")],
    want: ["delete web-2"],
  },
  {
    name: "a surplus pod waits for a lower one that is not ready",
    spec: { replicas: 1 },
    pods: [pod(0, "ready"), pod(1, "pending"), pod(2, "pending")],
    want: [],
  },
  {
    name: "the lowest that is not ready may go itself",
    spec: { replicas: 1 },
    pods: [pod(0, "ready"), pod(1, "pending")],
    want: ["delete web-1"],
  },
  {
    name: "the highest old pod is updated first",
    pods: [pod(0, "old"), pod(1, "old"), pod(2, "ready")],
    want: ["delete web-1"],
  },
  {
    name: "in parallel, an old pod that is broken does not keep the others from being updated",
    spec: { podManagementPolicy: "Parallel" },
    pods: [pod(0, "broken"), pod(1, "old"), pod(2, "old")],
    want: ["delete web-2"],
  },
  {
    name: "and goes in its turn",
    spec: { podManagementPolicy: "Parallel" },
    pods: [pod(0, "broken"), pod(1, "ready"), pod(2, "ready")],
    want: ["delete web-0"],
  },
  {
    name: "but a new pod that is not ready does",
    spec: { podManagementPolicy: "Parallel" },
    pods: [pod(0, "broken"), pod(1, "old"), pod(2, "pending")],
    want: ["provide 2"],
  },
  {
    name: "an ended pod is deleted once, whatever its template",
    spec: { podManagementPolicy: "Parallel" },
    pods: [pod(0, "old"), pod(1, "old"), pod(2, "failed")],
    want: ["delete web-2"],
  },
  {
    name: "several at once if they may be unavailable",
    spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1, maxUnavailable: 2 } } },
    pods: [pod(0, "old"), pod(1, "old"), pod(2, "old")],
    want: ["delete web-2", "delete web-1"],
  },
  {
    name: "below the partition the former template is used",
    spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } },
    pods: [],
    want: ["create 0 current"],
  },
  {
    name: "OnDelete updates nothing",
    spec: { updateStrategy: { type: "OnDelete" } },
    pods: [pod(0, "old"), pod(1, "old"), pod(2, "old")],
    want: [],
  },
];
for (const { name, spec, pods, want } of cases) {
  test(name, () => {
    const isDeleting = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined;
    const plan = planStatefulSet({ set: set(spec), pods, updateRevision: "web-2", isDeleting, nowMs: 0 });
    assert.deepEqual(plan.map(text), want);
  });
}

for (const { type, want } of [
  { type: "RollingUpdate", want: "web-2" },
  { type: "OnDelete", want: "web-1" },
]) {
  test(`with ${type}, ${want} is current once all pods are new and ready`, () => {
    const facts = {
      set: set({ updateStrategy: { type } }),
      pods: [pod(0, "ready"), pod(1, "ready"), pod(2, "ready")],
      updateRevision: "web-2",
      isDeleting: () => false,
      nowMs: 0,
    };
    const status = statefulSetStatus({ ...facts, currentRevision: "web-1", collisionCount: 0 });
    assert.equal(status.currentRevision, want);
  });
}

test("a pod that is said to be ready and does not run is not ready", () => {
  const lost = { ...pod(0, "ready"), status: { ...pod(0, "ready").status, phase: "Unknown" } };
  const facts = { set: set(), pods: [lost], updateRevision: "web-2", isDeleting: () => false, nowMs: 0 };
  const { replicas, readyReplicas } = statefulSetStatus({ ...facts, currentRevision: "web-2", collisionCount: 0 });
  assert.deepEqual([replicas, readyReplicas], [1, 0]);
});

test("a set that asks for billions of pods gets them in portions", () => {
  const spec = { replicas: 2 ** 31 - 1, podManagementPolicy: "Parallel" };
  const facts = { pods: [], updateRevision: "web-2", isDeleting: () => false, nowMs: 0 };
  const plan = planStatefulSet({ set: set(spec), ...facts });
  assert.equal(plan.length, 500);
});

test("nothing is done for a set that is being deleted", () => {
  const given = set();
  const deleted = { ...given, metadata: { ...given.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  const pods = [pod(0, "failed"), pod(5, "ready")];
  assert.deepEqual(
    planStatefulSet({ set: deleted, pods, updateRevision: "web-2", isDeleting: () => false, nowMs: 0 }),
    [],
  );
});
