import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { eventSubject } from "./subject.ts";

const event = {
  sequence: 1,
  type: "Normal",
  reason: "r",
  message: "m",
  pod: { uid: "u", name: "web", namespace: "ns" },
  count: 1,
  first: 0,
  last: 0,
} as const;

test("an event is about its pod, a container of it, a claim that it uses, or the node", () => {
  assert.deepEqual(eventSubject(event, undefined, "n1"), { kind: "Pod", ...event.pod });
  const web = pod("web").container("app").build();
  assert.equal(eventSubject({ ...event, container: "app" }, web, "n1")?.fieldPath, "spec.containers{app}");
  const claim = { namespace: "ns", name: "data", uid: "c" };
  assert.deepEqual(eventSubject({ ...event, claim }, web, "n1"), { kind: "PersistentVolumeClaim", ...claim });
  const ofNode = { ...event, pod: { uid: "", name: "n1", namespace: "" } };
  assert.equal(eventSubject(ofNode, undefined, "n1")?.kind, "Node");
  assert.equal(eventSubject({ ...ofNode, pod: { ...ofNode.pod, name: "/etc/x.yaml" } }, undefined, "n1"), undefined);
});
