import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deployment } from "../../model/generated/types.ts";
import { progressCheckMs } from "./rollout-status.ts";

const at = (text: string) => ({ text, ms: Date.parse(text) });
const deployment = (paused: boolean): Deployment => ({
  metadata: { name: "d" },
  spec: { replicas: 3, selector: {}, template: {}, progressDeadlineSeconds: 600, paused },
});
const status = (reason: string) => ({
  conditions: [{ type: "Progressing", status: "Unknown", reason, lastUpdateTime: "2026-01-01T00:00:00Z" }],
});

for (const { name, paused, reason, now, want } of [
  { name: "a rollout is judged again a second after its deadline", reason: "ReplicaSetUpdated", want: 301_000 },
  { name: "one that has timed out is not", reason: "ProgressDeadlineExceeded", want: undefined },
  { name: "one that is complete is not", reason: "NewReplicaSetAvailable", want: undefined },
  { name: "a paused one is not", paused: true, reason: "DeploymentPaused", want: undefined },
  {
    name: "a pause that is longer than the deadline is not looked at again and again",
    paused: true,
    reason: "DeploymentPaused",
    now: "2026-01-01T05:00:00Z",
    want: undefined,
  },
]) {
  test(name, () => {
    const found = progressCheckMs(deployment(paused ?? false), status(reason), at(now ?? "2026-01-01T00:05:00Z"));
    assert.equal(found, want);
  });
}
