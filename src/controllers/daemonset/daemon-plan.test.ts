import assert from "node:assert/strict";
import { test } from "node:test";
import type { DaemonSet, Pod } from "../../model/generated/types.ts";
import { daemonSetStatus, planDaemonSet } from "./daemon-plan.ts";

const set = (maxUnavailable: number | string, maxSurge: number | string = 0): DaemonSet => ({
  metadata: { name: "d" },
  spec: {
    selector: {},
    template: { spec: { containers: [] } },
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable, maxSurge } },
  },
});
const pod = (nodeName: string, hash: string, state: "ready" | "starting" | "deleting" = "ready"): Pod => ({
  metadata: {
    name: `${nodeName}-${hash}`,
    labels: { "controller-revision-hash": hash },
    ...(state === "deleting" && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
  },
  spec: { containers: [], nodeName },
  status: { phase: "Running", conditions: [{ type: "Ready", status: state === "ready" ? "True" : "False" }] },
});
const nodes = ["a", "b", "c", "d"].map((name) => ({ metadata: { name }, spec: {} }));

const cases: readonly {
  readonly name: string;
  readonly set: DaemonSet;
  readonly pods: readonly Pod[];
  readonly creations?: readonly string[];
  readonly deletions?: readonly string[];
}[] = [
  { name: "every node without a pod gets one", set: set(1), pods: [pod("a", "new")], creations: ["b", "c", "d"] },
  {
    name: "a second pod of a node goes",
    set: set(1),
    pods: [pod("a", "new"), pod("a", "new2"), ...["b", "c", "d"].map((name) => pod(name, "new"))],
    deletions: ["a-new2"],
  },
  {
    name: "a pod of a node that is gone goes",
    set: set(1),
    pods: [...nodes.map(({ metadata }) => pod(metadata.name, "new")), pod("x", "new")],
    deletions: ["x-new"],
  },
  {
    name: "one old pod at a time",
    set: set(1),
    pods: nodes.map(({ metadata }) => pod(metadata.name, "old")),
    deletions: ["a-old"],
  },
  {
    name: "half of them",
    set: set("50%"),
    pods: nodes.map(({ metadata }) => pod(metadata.name, "old")),
    deletions: ["a-old", "b-old"],
  },
  {
    name: "an old pod that is not available goes at once and counts",
    set: set(1),
    pods: [pod("a", "old"), pod("b", "old", "starting"), pod("c", "old"), pod("d", "old")],
    deletions: ["b-old"],
  },
  {
    name: "none while a new pod starts",
    set: set(1),
    pods: [pod("a", "new", "starting"), pod("b", "old"), pod("c", "old"), pod("d", "old")],
  },
  {
    name: "none while an old pod ends",
    set: set(1),
    pods: [pod("a", "old", "deleting"), pod("b", "old"), pod("c", "old"), pod("d", "old")],
  },
  {
    name: "a surge creates beside the old pod",
    set: set(0, 1),
    pods: nodes.map(({ metadata }) => pod(metadata.name, "old")),
    creations: ["a"],
  },
  {
    name: "and no further one while the first starts",
    set: set(0, 1),
    pods: [pod("a", "new", "starting"), ...nodes.map(({ metadata }) => pod(metadata.name, "old"))],
  },
  {
    name: "and deletes the old one when the new one is available",
    set: set(0, 1),
    pods: [pod("a", "new"), ...nodes.map(({ metadata }) => pod(metadata.name, "old"))],
    deletions: ["a-old"],
  },
];
for (const { name, set: given, pods, creations = [], deletions = [] } of cases) {
  test(name, () => {
    const isDeleting = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined;
    const plan = planDaemonSet({ set: given, nodes, pods, hash: "new", isDeleting, nowMs: 0 });
    assert.deepEqual(plan.creations, creations);
    assert.deepEqual(
      plan.deletions.map(({ metadata }) => metadata.name),
      deletions,
    );
  });
}

const aged = (given: Pod, minute: number): Pod => ({
  ...given,
  metadata: { ...given.metadata, creationTimestamp: `2026-01-01T00:0${minute}:00Z` },
});
const withPhase = (given: Pod, phase: string): Pod => ({ ...given, status: { ...given.status, phase } });

for (const { name, pods, want } of [
  { name: "a node without a pod is desired and not scheduled", pods: [], want: [1, 0, 0, 0, 0, 1] },
  { name: "a pod of the newest template is updated", pods: [pod("a", "new")], want: [1, 1, 1, 1, 1, 0] },
  { name: "one that starts is not available", pods: [pod("a", "new", "starting")], want: [1, 1, 0, 1, 0, 1] },
  {
    name: "a new pod that starts beside the old one does not count: the rollout is not over",
    pods: [aged(pod("a", "new", "starting"), 2), aged(pod("a", "old"), 1)],
    want: [1, 1, 1, 0, 1, 0],
  },
  {
    name: "a pod that has ended and goes does not speak for its node",
    pods: [aged(withPhase(pod("a", "old", "deleting"), "Failed"), 1), aged(pod("a", "new"), 2)],
    want: [1, 1, 1, 1, 1, 0],
  },
]) {
  test(`status: ${name}`, () => {
    const isDeleting = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined;
    const facts = { set: set(1), nodes: nodes.slice(0, 1), pods, hash: "new", isDeleting, nowMs: Date.UTC(2026, 0, 2) };
    const found = daemonSetStatus(facts, 0);
    const { desiredNumberScheduled, currentNumberScheduled, numberReady, updatedNumberScheduled } = found;
    const counts = [desiredNumberScheduled, currentNumberScheduled, numberReady, updatedNumberScheduled];
    assert.deepEqual([...counts, found.numberAvailable, found.numberUnavailable], want);
  });
}
