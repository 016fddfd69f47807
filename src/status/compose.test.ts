import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Pod } from "../model/generated/types.ts";
import { CONFIG_HASH_ANNOTATION, CONFIG_MIRROR_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from "../model/labels.ts";
import { composePodStatuses } from "./compose.ts";

const UID = "static-uid";
const metadata = { namespace: "kube-system", name: "scheduler-n1" };
const manifest: Pod = {
  metadata: {
    ...metadata,
    uid: UID,
    annotations: { [CONFIG_HASH_ANNOTATION]: UID, [CONFIG_SOURCE_ANNOTATION]: "file" },
  },
  spec: { containers: [] },
};
const mirror: Pod = {
  metadata: {
    ...metadata,
    uid: "mirror-uid",
    annotations: { [CONFIG_MIRROR_ANNOTATION]: UID, [CONFIG_SOURCE_ANNOTATION]: "file" },
  },
  spec: { containers: [] },
};

/** A node with the mirror of a static pod on its API server; `state` is what its sources say. */
function site(state: { listed: readonly Pod[]; isComplete: boolean }) {
  const clock = new FakeClock();
  const calls: string[] = [];
  const api = { delete: async (_resource: unknown, { uid }: { uid: string }) => void calls.push(`delete ${uid}`) };
  const statuses = composePodStatuses(
    {
      // The fake speaks of deletions only: nothing else is asked for here.
      api: api as never,
      clock,
      log: silent,
      metrics: new Metrics(),
      pool: {
        hasWaiting: false,
        uids: () => [],
        worker: () => undefined,
        isFinished: () => false,
        status: () => ({ phase: "Running" }),
        onStatus: () => undefined,
      },
      desired: {
        allSourcesReady: true,
        get isComplete() {
          return state.isComplete;
        },
        get: () => undefined,
        list: () => state.listed.map((pod) => ({ uid: UID, pod })),
      },
      pods: { hasSynced: true, named: () => mirror, all: () => [mirror] },
      node: { current: undefined, onNode: () => undefined },
    },
    { signal: manyListeners().signal },
  );
  return { calls, change: () => (statuses.desiredChanged(), clock.advance(0)) };
}

test("the mirror of a static pod whose manifest is still being read is not deleted", async () => {
  const state = { listed: [] as Pod[], isComplete: false };
  const { calls, change } = site(state);
  await change();
  assert.deepEqual(calls, []);
  state.isComplete = true;
  await change();
  assert.deepEqual(calls, ["delete mirror-uid"]);
});

test("the mirror of a static pod that was removed is deleted, though another manifest cannot be read", async () => {
  const state = { listed: [manifest], isComplete: false };
  const { calls, change } = site(state);
  await change();
  assert.deepEqual(calls, []);
  state.listed = [];
  await change();
  assert.deepEqual(calls, ["delete mirror-uid"]);
});
