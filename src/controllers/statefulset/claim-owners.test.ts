import assert from "node:assert/strict";
import { test } from "node:test";
import type { OwnerReference, StatefulSet } from "../../model/generated/types.ts";
import { claimOwners } from "./claim-owners.ts";

const set = (whenDeleted: string, whenScaled: string): StatefulSet => ({
  metadata: { name: "web", uid: "set" },
  spec: { replicas: 1, selector: {}, template: {}, persistentVolumeClaimRetentionPolicy: { whenDeleted, whenScaled } },
});
const owner = (uid: string, kind: string, name: string): OwnerReference => ({
  apiVersion: kind === "Pod" ? "v1" : "apps/v1",
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});
const bySet = owner("set", "StatefulSet", "web");
const byPod = owner("pod", "Pod", "web-1");

const cases = [
  { name: "kept always: no owner", policy: ["Retain", "Retain"], ordinal: 0, known: [], want: undefined },
  { name: "kept always: owners are removed", policy: ["Retain", "Retain"], ordinal: 0, known: [bySet], want: [] },
  { name: "deleted with the set", policy: ["Delete", "Retain"], ordinal: 0, known: [], want: ["set"] },
  {
    name: "deleted with the set, also of a pod too many",
    policy: ["Delete", "Retain"],
    ordinal: 1,
    known: [],
    want: ["set"],
  },
  { name: "deleted with a pod too many", policy: ["Retain", "Delete"], ordinal: 1, known: [], want: ["pod"] },
  { name: "not with a pod that is wanted", policy: ["Retain", "Delete"], ordinal: 0, known: [byPod], want: [] },
  { name: "from the set to the pod", policy: ["Delete", "Delete"], ordinal: 1, known: [bySet], want: ["pod"] },
  {
    name: "a former pod's claim is left alone",
    policy: ["Delete", "Delete"],
    ordinal: 1,
    known: [owner("old", "Pod", "web-1")],
    want: undefined,
  },
  {
    name: "another controller's claim is left alone",
    policy: ["Delete", "Delete"],
    ordinal: 0,
    known: [owner("x", "Thing", "x")],
    want: undefined,
  },
] as const;
for (const { name, policy, ordinal, known, want } of cases) {
  test(name, () => {
    const pod = { metadata: { name: "web-1", uid: "pod" }, spec: { containers: [] } };
    const facts = { set: set(policy[0], policy[1]), pod, ordinal };
    const next = claimOwners({ metadata: { ownerReferences: [...known] }, spec: {} }, facts);
    assert.deepEqual(
      next?.map(({ uid }) => uid),
      want,
    );
  });
}
