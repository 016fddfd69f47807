import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeStatus } from "../model/generated/types.ts";
import { conditionEvents, nodeConditions } from "./conditions.ts";
import { rememberSent, statusPatch } from "./status-patch.ts";

const well = { memoryPressure: false, diskPressure: false, pidPressure: false, problems: [] };
const conditions = nodeConditions(well, undefined, "2026-01-01T00:00:00Z");
const status: NodeStatus = {
  addresses: [{ type: "InternalIP", address: "192.0.2.1" }],
  capacity: { cpu: "2" },
  conditions,
};
const same = { known: status, last: undefined, refresh: false };

test("a status that the server has already is not sent", () => {
  assert.equal(statusPatch(status, same), undefined);
});

test("a heartbeat alone is no change", () => {
  const later = nodeConditions(well, conditions, "2026-01-01T00:01:00Z");
  assert.equal(statusPatch({ ...status, conditions: later }, same), undefined);
  assert.deepEqual(statusPatch({ ...status, conditions: later }, { ...same, refresh: true }), {
    status: { conditions: later },
  });
});

test("only what changed is sent, addresses as a whole", () => {
  const wanted = { ...status, addresses: [{ type: "InternalIP", address: "192.0.2.2" }] };
  assert.deepEqual(statusPatch(wanted, same)?.status, {
    addresses: [{ type: "InternalIP", address: "192.0.2.2" }, { $patch: "replace" }],
    conditions,
  });
});

test("a field that an older server drops is sent once", () => {
  const wanted = { ...status, declaredFeatures: ["New"] };
  const first = statusPatch(wanted, same);
  assert.deepEqual(first?.status["declaredFeatures"], ["New"]);
  assert.equal(statusPatch(wanted, { ...same, last: { sent: wanted, answer: status } }), undefined);
  const changed = { ...status, declaredFeatures: ["Newer"] };
  assert.ok(statusPatch(changed, { ...same, last: { sent: wanted, answer: status } }) !== undefined);
});

test("what somebody else changed while another field was sent is put right", () => {
  const wanted = { ...status, volumesInUse: [] };
  const patch = { volumesInUse: [] };
  const theirs = { ...status, capacity: { cpu: "1" } };
  const last = rememberSent(patch, { status: wanted, answer: theirs, last: undefined });
  assert.deepEqual(statusPatch(wanted, { known: theirs, last, refresh: false })?.status["capacity"], { cpu: "2" });
});

test("the condition of the configuration goes when there is nothing more to tell; those of others stay", () => {
  const config = { type: "KubeletConfigOk", status: "True" };
  const others = [{ type: "NetworkUnavailable", status: "False" }];
  const withIt = { ...status, conditions: [...conditions, config] };
  const known = { ...status, conditions: [...conditions, config, ...others] };
  assert.equal(statusPatch(withIt, { ...same, known }), undefined);
  assert.deepEqual(statusPatch(status, { ...same, known })?.status["conditions"], [
    ...conditions,
    { $patch: "delete", type: "KubeletConfigOk" },
  ]);
});

test("a condition keeps the time since which it holds", () => {
  const broken = nodeConditions({ ...well, problems: ["a", "b"] }, conditions, "2026-01-01T00:05:00Z");
  const ready = broken.find(({ type }) => type === "Ready");
  assert.deepEqual(
    [ready?.status, ready?.reason, ready?.message, ready?.lastTransitionTime],
    ["False", "KubeletNotReady", "[a, b]", "2026-01-01T00:05:00Z"],
  );
  assert.equal(broken.find(({ type }) => type === "DiskPressure")?.lastTransitionTime, "2026-01-01T00:00:00Z");
  assert.deepEqual(conditionEvents(conditions, broken), ["NodeNotReady"]);
  assert.deepEqual(conditionEvents(broken, conditions), ["NodeReady"]);
  assert.deepEqual(conditionEvents(conditions, conditions), []);
});

interface Case {
  readonly name: string;
  readonly known: NodeStatus;
  readonly wanted: NodeStatus;
  readonly want: Record<string, unknown> | undefined;
}

const maps: readonly Case[] = [
  {
    name: "only the keys that changed are sent, and what is over is taken back",
    known: { capacity: { cpu: "2", pods: "110", "hugepages-1Gi": "1Gi" } },
    wanted: { capacity: { cpu: "2", pods: "20" } },
    want: { capacity: { pods: "20", "hugepages-1Gi": null } },
  },
  {
    name: "volumes that an earlier agent used are no longer in use",
    known: { volumesInUse: ["kubernetes.io/csi/d^h"] },
    wanted: { volumesInUse: [] },
    want: { volumesInUse: [] },
  },
  { name: "an empty list is none", known: {}, wanted: { volumesInUse: [], declaredFeatures: [] }, want: undefined },
];
for (const { name, known, wanted, want } of maps) {
  test(name, () => {
    const patch = statusPatch({ ...wanted, conditions }, { ...same, known: { ...known, conditions } });
    assert.deepEqual(patch?.status, want && { ...want, conditions });
  });
}
