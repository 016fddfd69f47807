import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../../model/generated/types.ts";
import { withReadinessGates } from "./readiness-gates.ts";

const pod = (conditions: readonly { type: string; status: string }[]): Pod => ({
  metadata: { name: "p" },
  spec: { containers: [], readinessGates: [{ conditionType: "a" }, { conditionType: "b" }] },
  status: { conditions },
});
const yes = { holds: true };

test("a pod without gates is as ready as its containers", () => {
  assert.deepEqual(withReadinessGates(yes, { metadata: {}, spec: { containers: [] } }), yes);
});

test("containers that are not ready are told first", () => {
  const no = { holds: false, reason: "ContainersNotReady", message: "m" };
  assert.deepEqual(withReadinessGates(no, pod([])), no);
});

test("all gates must hold", () => {
  assert.deepEqual(
    withReadinessGates(
      yes,
      pod([
        { type: "a", status: "True" },
        { type: "b", status: "True" },
      ]),
    ),
    yes,
  );
  assert.deepEqual(withReadinessGates(yes, pod([{ type: "a", status: "False" }])), {
    holds: false,
    reason: "ReadinessGatesNotReady",
    message:
      'the status of pod readiness gate "a" is not "True", but False, corresponding condition of pod readiness gate "b" does not exist.',
  });
});
