import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Node, Pod } from "../model/generated/types.ts";
import { MirrorPods, mirrorOf, mirrorStep } from "./mirror-pods.ts";

const HASH = "kubernetes.io/config.hash";
const MIRROR = "kubernetes.io/config.mirror";
const made = (annotations: Record<string, string>, more: object = {}): Pod => ({
  metadata: { name: "web-n1", namespace: "ns", uid: "static", annotations, ...more },
  spec: { containers: [] },
});
const wanted = made({ [HASH]: "h1" });

const steps = [
  { name: "nothing there, nothing wanted", wanted: undefined, mirror: undefined, want: "keep" },
  { name: "none yet", wanted, mirror: undefined, want: "create" },
  { name: "the same", wanted, mirror: made({ [MIRROR]: "h1" }), want: "keep" },
  { name: "of another version", wanted, mirror: made({ [MIRROR]: "h0" }), want: "replace" },
  {
    name: "asked to go",
    wanted,
    mirror: made({ [MIRROR]: "h1" }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    want: "replace",
  },
  { name: "of no pod", wanted: undefined, mirror: made({ [MIRROR]: "h0" }), want: "delete" },
] as const;
for (const { name, wanted: pod, mirror, want } of steps) {
  test(`mirror: ${name}`, () => assert.equal(mirrorStep(pod, mirror), want));
}

test("a mirror belongs to the node and carries no UID and no status of the pod", () => {
  const mirror = mirrorOf({ ...wanted, status: { phase: "Pending" } }, { name: "n1", uid: "nu" });
  assert.equal(mirror.metadata.uid, undefined);
  assert.equal(mirror.status, undefined);
  assert.equal(mirror.metadata.annotations?.[MIRROR], "h1");
  assert.deepEqual(mirror.metadata.ownerReferences, [
    { apiVersion: "v1", kind: "Node", name: "n1", uid: "nu", controller: true },
  ]);
});

function site(staticPod: Pod | "waits" | undefined, mirror: Pod | undefined, node: Node | undefined) {
  const clock = new FakeClock();
  const calls: string[] = [];
  const api = {
    create: async () => void calls.push("create"),
    delete: async (_resource: unknown, { uid }: { uid: string }) => void calls.push(`delete ${uid}`),
  };
  const mirrors = new MirrorPods({
    // The fake speaks of pods only.
    api: api as never,
    clock,
    log: silent,
    pods: { staticPod: () => staticPod, mirror: () => mirror, node: () => node },
  });
  return { calls, run: async () => (mirrors.wake(wanted), clock.advance(0)) };
}
const node: Node = { metadata: { name: "n1", uid: "nu" }, spec: {} };

test("a mirror of another version is deleted, then made anew", async () => {
  const { calls, run } = site(wanted, made({ [MIRROR]: "h0" }, { uid: "m0" }), node);
  await run();
  assert.deepEqual(calls, ["delete m0", "create"]);
});

test("nothing happens while an earlier version still ends, or without a node", async () => {
  const waits = site("waits", made({ [MIRROR]: "h0" }), node);
  await waits.run();
  assert.deepEqual(waits.calls, []);
  const alone = site(wanted, undefined, undefined);
  await alone.run();
  assert.deepEqual(alone.calls, []);
});

test("a mirror that a server without its pods does not find is deleted again until it is gone", async () => {
  const clock = new FakeClock();
  let mirror: Pod | undefined = made({ [MIRROR]: "h0" }, { uid: "m0" });
  let [answers, deletes] = [2, 0];
  const api = {
    delete: async () => {
      deletes++;
      if (answers-- > 0) throw new ApiError("NotFound", "not loaded");
      mirror = undefined;
    },
  };
  const pods = { staticPod: () => undefined, mirror: () => mirror, node: () => node };
  const mirrors = new MirrorPods({ api: api as never, clock, log: silent, pods });
  mirrors.wake(wanted);
  await clock.advance(0);
  assert.equal(deletes, 1);
  await clock.advance(60_000);
  assert.deepEqual([deletes, mirror], [3, undefined]);
});
