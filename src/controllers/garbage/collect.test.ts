import assert from "node:assert/strict";
import { test } from "node:test";
import { PODS } from "../../adapters/kubeapi/index.ts";
import type { ObjectMeta, OwnerReference } from "../../model/generated/types.ts";
import { blockingDependents, type Collection, type OwnerState, planCollection } from "./collect.ts";
import type { GraphNode } from "./object-graph.ts";

const AT = "2026-01-01T00:00:00Z";
const node = (metadata: Partial<ObjectMeta> = {}): GraphNode => ({
  resource: PODS,
  metadata: { uid: "me", ...metadata },
});
const owner = (uid: string, state: OwnerState) => ({
  reference: { apiVersion: "v1", kind: "Pod", name: uid, uid } satisfies OwnerReference,
  state,
});
const waitingDependent = node({ uid: "d", deletionTimestamp: AT, finalizers: ["foregroundDeletion"] });

const cases: readonly {
  readonly name: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly owners: readonly ReturnType<typeof owner>[];
  readonly dependents?: readonly GraphNode[];
  readonly want: Collection;
}[] = [
  { name: "an object without owners stays", owners: [], want: { kind: "none" } },
  { name: "an object with its owner stays", owners: [owner("a", "solid")], want: { kind: "none" } },
  {
    name: "an object whose only owner is gone is deleted in the background",
    owners: [owner("a", "absent")],
    want: { kind: "delete", propagation: "Background", unblocks: false },
  },
  {
    name: "an object with one owner left forgets the others",
    owners: [owner("a", "absent"), owner("b", "solid"), owner("c", "waiting")],
    want: { kind: "forget", uids: ["a", "c"] },
  },
  {
    name: "an object with an owner that it cannot have is left alone, whatever became of the others",
    owners: [owner("a", "absent"), owner("b", "invalid")],
    want: { kind: "none" },
  },
  {
    name: "an object that is being deleted already is left alone",
    metadata: { deletionTimestamp: AT },
    owners: [owner("a", "absent")],
    want: { kind: "none" },
  },
  {
    name: "a dependent of an owner that waits is deleted",
    owners: [owner("a", "waiting")],
    want: { kind: "delete", propagation: "Background", unblocks: false },
  },
  {
    name: "a dependent that has dependents itself is deleted in the foreground",
    owners: [owner("a", "waiting")],
    dependents: [node({ uid: "d" })],
    want: { kind: "delete", propagation: "Foreground", unblocks: false },
  },
  {
    name: "a circle of owners that wait for each other is opened",
    owners: [owner("a", "waiting")],
    dependents: [waitingDependent],
    want: { kind: "delete", propagation: "Foreground", unblocks: true },
  },
  {
    name: "a circle of owners that are all deleted in the foreground is opened, too",
    metadata: { deletionTimestamp: AT, finalizers: ["foregroundDeletion"] },
    owners: [owner("a", "waiting")],
    dependents: [waitingDependent],
    want: { kind: "delete", propagation: "Foreground", unblocks: true },
  },
  {
    name: "an object that is deleted in the foreground, and waits for dependents that do not wait, is left alone",
    metadata: { deletionTimestamp: AT, finalizers: ["foregroundDeletion"] },
    owners: [owner("a", "waiting")],
    dependents: [node({ uid: "d" })],
    want: { kind: "none" },
  },
  {
    name: "an object that has the orphan finalizer keeps its dependents",
    metadata: { finalizers: ["orphan"] },
    owners: [owner("a", "absent")],
    want: { kind: "delete", propagation: "Orphan", unblocks: false },
  },
];
for (const { name, metadata, owners, dependents = [], want } of cases) {
  test(name, () => assert.deepEqual(planCollection({ node: node(metadata), owners, dependents }), want));
}

test("only dependents that say so block their owner's deletion", () => {
  const reference = { apiVersion: "v1", kind: "Pod", name: "o", uid: "o" };
  const blocking = node({ ownerReferences: [{ ...reference, blockOwnerDeletion: true }] });
  const other = node({ ownerReferences: [reference] });
  assert.deepEqual(blockingDependents([blocking, other], "o"), [blocking]);
});
