import assert from "node:assert/strict";
import { test } from "node:test";
import { dynamicLines } from "./config-history.ts";

test("config view shows the assigned configuration, and why it is not active", () => {
  const none = { assigned: undefined, active: undefined, lastKnownGood: undefined };
  const report = { directory: "/d", state: "local", ...none } as const;
  assert.doesNotMatch(dynamicLines(report), /assigned by/);
  const lines = dynamicLines({ ...report, followed: { by: "the annotation", error: "there is no ConfigMap a/b" } });
  assert.match(lines, /^ {2}assigned by {6}the annotation$/m);
  assert.match(lines, /^ {2}sync error {7}there is no ConfigMap a\/b$/m);
});
