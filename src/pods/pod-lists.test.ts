import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeRing } from "../../test/support/ring.ts";
import type { Pod } from "../model/generated/types.ts";
import { podLists } from "./pod-lists.ts";

const needs = (name: string, cpu: string): Pod =>
  pod(name)
    .container("app", { resources: { requests: { cpu } } })
    .build();
const fits = needs("fits", "1500m");
const all = [fits, needs("large", "1")];

const active = (ring: FakeRing): readonly (string | undefined)[] => {
  const list = () =>
    all.map((of) => ({ uid: of.metadata.uid ?? "", pod: of, source: "file", warnings: [], seenAt: 0 }));
  return podLists({ list }, ring.pool)
    .activePods()
    .map(({ metadata }) => metadata.name);
};

test("a pod is active from its appearance on, and not once it was rejected", async () => {
  const ring = new FakeRing();
  assert.deepEqual(active(ring), [], "no pod is wanted yet");
  await ring.restartAgent({ isListed: false });
  ring.publish(...all);
  assert.deepEqual(active(ring), ["fits", "large"], "nothing is decided before the runtime has answered");
  await ring.want(...all);
  assert.equal(ring.status("large")?.reason, "OutOfcpu");
  assert.deepEqual(active(ring), ["fits"]);
  await ring.want();
  await ring.clock.advance(60_000);
  assert.deepEqual(active(ring), []);
});

test("a pod that completed is not active", async () => {
  const ring = new FakeRing({ app: { exitAfterMs: 100 } });
  await ring.want({ ...fits, spec: { ...fits.spec, restartPolicy: "Never" } });
  assert.deepEqual(active(ring), ["fits"]);
  await ring.clock.advance(1000);
  assert.deepEqual(active(ring), []);
});
