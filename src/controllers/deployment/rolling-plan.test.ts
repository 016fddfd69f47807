import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment, ReplicaSet } from "../../model/generated/types.ts";
import { expiredSets } from "./revisions.ts";
import { planRolling, planScaling } from "./rolling-plan.ts";

const template = { metadata: {}, spec: { containers: [] } };
const deployment = (replicas: number, maxSurge: number | string, maxUnavailable: number | string): Deployment => ({
  metadata: { name: "d" },
  spec: {
    replicas,
    selector: {},
    template,
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } },
  },
});
const set = (
  name: string,
  size: number,
  more: { available?: number; desired?: number; max?: number } = {},
): ReplicaSet => ({
  metadata: {
    name,
    creationTimestamp: `2026-01-01T00:00:0${name.length}Z`,
    annotations: {
      ...(more.desired !== undefined && { "deployment.kubernetes.io/desired-replicas": String(more.desired) }),
      ...(more.max !== undefined && { "deployment.kubernetes.io/max-replicas": String(more.max) }),
    },
  },
  spec: { replicas: size, selector: {} },
  status: { replicas: size, availableReplicas: more.available ?? size },
});
const sizes = (plan: readonly { readonly set: ReplicaSet; readonly size: number }[]) =>
  Object.fromEntries(plan.map((one) => [one.set.metadata.name, one.size]));

const rolling = [
  {
    name: "the new set grows by the surge",
    given: [deployment(10, 3, 2), set("new", 0), [set("old", 10)]],
    want: { new: 3 },
  },
  {
    name: "the new set does not shrink if there are more pods than the surge allows",
    given: [deployment(4, 1, 0), set("new", 2, { available: 0 }), [set("old", 6)]],
    want: { old: 4 },
  },
  {
    name: "old sets shrink by what may be unavailable",
    given: [deployment(10, 3, 2), set("new", 3, { available: 0 }), [set("old", 10)]],
    want: { old: 8 },
  },
  {
    name: "pods that crash do not take more from old sets",
    given: [deployment(10, 3, 2), set("new", 5, { available: 0 }), [set("old", 8, { available: 7 })]],
    want: {},
  },
  {
    name: "unavailable old pods go first",
    given: [deployment(10, 0, 2), set("new", 2, { available: 2 }), [set("old", 8, { available: 3 })]],
    want: { old: 6 },
  },
  {
    name: "neither surge nor unavailability means one at a time",
    given: [deployment(2, 0, "10%"), set("new", 0), [set("old", 2)]],
    want: { old: 1 },
  },
  { name: "a new set that is too large shrinks", given: [deployment(2, 1, 1), set("new", 5), []], want: { new: 2 } },
  {
    name: "per cents are rounded up for the surge and down for the rest",
    given: [deployment(3, "25%", "25%"), set("new", 0), [set("old", 3)]],
    want: { new: 1 },
  },
] as const;
for (const { name, given, want } of rolling) {
  test(name, () => assert.deepEqual(sizes(planRolling(...(given as unknown as Parameters<typeof planRolling>))), want));
}

const scaling = [
  {
    name: "the only active set takes the change",
    replicas: 5,
    newSet: set("new", 3),
    oldSets: [set("old", 0)],
    want: { new: 5 },
  },
  {
    name: "also if it has the size already: it may be noted for another one",
    replicas: 3,
    newSet: set("new", 3, { desired: 5 }),
    oldSets: [],
    want: { new: 3 },
  },
  {
    name: "without an active set the newest takes it",
    replicas: 2,
    newSet: set("new", 0),
    oldSets: [set("old", 0)],
    want: { new: 2 },
  },
  {
    name: "old sets beside a complete new one are emptied",
    replicas: 3,
    newSet: set("new", 3, { desired: 3 }),
    oldSets: [set("old", 1)],
    want: { old: 0 },
  },
  {
    name: "in a rollout all sets grow in proportion",
    replicas: 10,
    newSet: set("new", 2, { desired: 5, max: 5, available: 0 }),
    oldSets: [set("old", 3, { desired: 5, max: 5 })],
    want: { old: 6, new: 4 },
  },
  {
    name: "what is left over goes to the newest of equal ones",
    replicas: 4,
    newSet: set("newest", 1, { desired: 3, max: 3, available: 0 }),
    oldSets: [set("old", 1, { desired: 3, max: 3 }), set("older", 1, { desired: 3, max: 3 })],
    want: { newest: 2, older: 1, old: 1 },
  },
  {
    name: "and shrink to nothing together",
    replicas: 0,
    newSet: set("new", 2, { desired: 5, max: 5 }),
    oldSets: [set("old", 3, { desired: 5, max: 5 })],
    want: { old: 0, new: 0 },
  },
] as const;
for (const { name, replicas, newSet, oldSets, want } of scaling) {
  test(name, () => assert.deepEqual(sizes(planScaling(deployment(replicas, 0, 1), { newSet, oldSets })), want));
}

test("only old sets that nothing runs of, as far as is known, leave the history", () => {
  const old = (name: string, size: number, more: Partial<ReplicaSet["status"]> = {}): ReplicaSet => ({
    metadata: { name, generation: 2 },
    spec: { replicas: size, selector: {} },
    status: { replicas: 0, observedGeneration: 2, ...more },
  });
  const sets = [
    old("free", 0),
    old("wanted", 1),
    old("running", 0, { replicas: 1 }),
    old("unseen", 0, { observedGeneration: 1 }),
  ];
  const { spec, ...rest } = deployment(1, 1, 1);
  const found = expiredSets({ ...rest, spec: { ...spec, revisionHistoryLimit: 0 } }, sets);
  assert.deepEqual(
    found.map(({ metadata }) => metadata.name),
    ["free"],
  );
});
