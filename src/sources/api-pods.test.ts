import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectList, WatchEvent } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { ApiPods } from "./api-pods.ts";
import type { Snapshot } from "./snapshot.ts";

let version = 0;
const pod = (name: string, more: Partial<Pod["metadata"]> = {}, status: Pod["status"] = { phase: "Pending" }): Pod => ({
  metadata: { name, namespace: "ns", uid: `uid-${name}`, resourceVersion: String(++version), ...more },
  spec: { containers: [{ name: "main" }] },
  status,
});

/** A server with a list and a watch that a test feeds. */
function site(items: readonly Pod[], { isNodeKnown = true, labels = {} as Record<string, string> } = {}) {
  const clock = new FakeClock();
  const node = { labels, newest: labels, fetched: 0, know: (): void => undefined };
  const synced = new Promise<void>((resolve) => {
    node.know = resolve;
  });
  if (isNodeKnown) node.know();
  const snapshots: Snapshot[] = [];
  const seen: string[] = [];
  const pending: WatchEvent<Pod>[] = [];
  let more: (() => void) | undefined;
  const api = {
    list: async (): Promise<ObjectList<Pod>> => ({ items, resourceVersion: String(++version), continueToken: "" }),
    watch: async (_resource: unknown, _query: unknown, { signal }: { signal: AbortSignal }) => {
      async function* events(): AsyncGenerator<WatchEvent<Pod>> {
        while (!signal.aborted) {
          const next = pending.shift();
          if (next !== undefined) yield next;
          else
            await new Promise<void>((resolve) => {
              more = resolve;
              signal.addEventListener("abort", () => resolve(), { once: true });
            });
        }
      }
      return events();
    },
  };
  const stop = manyListeners();
  const pods = new ApiPods(
    {
      // The fake speaks of pods only.
      api: api as never,
      clock,
      log: silent,
      publish: (snapshot: Snapshot) => snapshots.push(snapshot),
      node: {
        synced,
        mismatches: ({ spec }) =>
          Object.entries(spec.nodeSelector ?? {}).some(([key, value]) => node.labels[key] !== value),
        refetch: async () => {
          node.fetched++;
          await clock.sleep(10, stop);
          node.labels = node.newest;
        },
      },
      seen: (object, isGone) => seen.push(`${isGone ? "-" : "+"}${object.metadata.name}`),
    },
    { nodeName: "n1" },
  );
  const running = pods.run(stop.signal);
  const tell = async (type: "ADDED" | "MODIFIED" | "DELETED", object: Pod): Promise<void> => {
    pending.push({ type, object, resourceVersion: object.metadata.resourceVersion ?? "" });
    more?.();
    await clock.advance(0);
  };
  const names = (): string[] => (snapshots.at(-1)?.pods ?? []).map((one) => one.pod.metadata.name ?? "");
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { clock, pods, snapshots, seen, tell, names, end, node };
}

test("the first list is one snapshot, also when it is empty", async () => {
  const full = site([pod("a"), pod("b")]);
  await full.clock.advance(0);
  assert.equal(full.snapshots.length, 1);
  assert.deepEqual(full.names(), ["a", "b"]);
  await full.end();
  const empty = site([]);
  await empty.clock.advance(0);
  assert.deepEqual(empty.snapshots, [{ source: "api", pods: [], objects: [], isIncomplete: false }]);
  await empty.end();
});

test("a new status wakes nobody, but is seen", async () => {
  const { clock, snapshots, seen, tell, end } = site([pod("a")]);
  await clock.advance(0);
  await tell("MODIFIED", pod("a", {}, { phase: "Running" }));
  assert.equal(snapshots.length, 1);
  assert.deepEqual(seen, ["+a", "+a"]);
  await end();
});

test("the newest status is in the list of pods, though they are not published for it", async () => {
  const { pods, tell, end } = site([pod("web")]);
  await tell("MODIFIED", pod("web", {}, { phase: "Succeeded" }));
  assert.deepEqual(
    pods.current().map(({ metadata, status }) => [metadata.name, status?.phase]),
    [["web", "Succeeded"]],
  );
  await end();
});

test("labels, a deletion and a readiness gate's condition are changes", async () => {
  const { clock, snapshots, tell, end } = site([pod("a")]);
  await clock.advance(0);
  await tell("MODIFIED", pod("a", { labels: { x: "y" } }));
  assert.equal(snapshots.length, 2);
  await tell(
    "MODIFIED",
    pod("a", { labels: { x: "y" }, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 }),
  );
  assert.equal(snapshots.length, 3);
  const gated = { ...pod("a"), spec: { containers: [{ name: "main" }], readinessGates: [{ conditionType: "ok" }] } };
  await tell("MODIFIED", gated);
  await tell("MODIFIED", {
    ...gated,
    metadata: pod("a").metadata,
    status: { conditions: [{ type: "ok", status: "True" }] },
  });
  assert.equal(snapshots.length, 5);
  await end();
});

test("a pod that did not change is the same object again", async () => {
  const { clock, snapshots, tell, end } = site([pod("a")]);
  await clock.advance(0);
  await tell("ADDED", pod("b"));
  assert.equal(snapshots[1]?.pods[0]?.pod, snapshots[0]?.pods[0]?.pod);
  await end();
});

test("a deleted pod is gone from the snapshot; one of its name with another UID is another pod", async () => {
  const { clock, tell, names, snapshots, end } = site([pod("a")]);
  await clock.advance(0);
  await tell("DELETED", pod("a"));
  assert.deepEqual(names(), []);
  await tell("ADDED", pod("a", { uid: "second" }));
  assert.equal(snapshots.at(-1)?.pods[0]?.pod.metadata.uid, "second");
  await end();
});

test("mirrors are known by name, and no pods to run", async () => {
  const { clock, pods, names, end } = site([
    pod("m", { annotations: { "kubernetes.io/config.mirror": "h" } }),
    pod("a"),
  ]);
  await clock.advance(0);
  assert.deepEqual(names(), ["a"]);
  assert.equal(pods.named("ns", "m")?.metadata.uid, "uid-m");
  await end();
});

test("no pod is published before the Node object is known", async () => {
  const { clock, pods, snapshots, names, node, end } = site([pod("a")], { isNodeKnown: false });
  await clock.advance(60_000);
  assert.deepEqual([snapshots.length, pods.hasSynced, pods.isUnavailable], [0, false, false]);
  node.know();
  await clock.advance(0);
  assert.deepEqual([names(), pods.hasSynced], [["a"], true]);
  await end();
});

const inZone = (name: string): Pod => ({ ...pod(name), spec: { containers: [], nodeSelector: { zone: "a" } } });

test("a pod that does not match the known labels waits until these were fetched again", async () => {
  const { clock, snapshots, names, tell, node, end } = site([]);
  await clock.advance(0);
  node.newest = { zone: "a" };
  await tell("ADDED", inZone("a"));
  await tell("ADDED", pod("b"));
  assert.deepEqual([names(), snapshots.at(-1)?.isIncomplete], [["b"], true]);
  await clock.advance(10);
  assert.deepEqual([names(), snapshots.at(-1)?.isIncomplete, node.fetched], [["a", "b"], false, 1]);
  await end();
});

test("pods of the first list that do not match wait too, and the snapshot says that it is incomplete", async () => {
  const { clock, snapshots, names, end } = site([inZone("a"), pod("b")]);
  await clock.advance(0);
  assert.deepEqual([names(), snapshots.at(-1)?.isIncomplete], [["b"], true]);
  await clock.advance(10);
  // Labels that still do not match are for admission to judge.
  assert.deepEqual([names(), snapshots.at(-1)?.isIncomplete], [["a", "b"], false]);
  await end();
});

test("a pod that was started from a checkpoint is never held, though the node's labels do not match", async () => {
  const given = { ...pod("a"), spec: { containers: [{ name: "main" }], nodeSelector: { zone: "x" } } };
  const { clock, pods, snapshots, tell, end } = site([given]);
  pods.startOffline([given]);
  await clock.advance(5);
  await tell("MODIFIED", { ...given, metadata: { ...given.metadata, resourceVersion: "99", labels: { new: "" } } });
  await clock.advance(20);
  assert.ok(snapshots.length > 1);
  for (const snapshot of snapshots)
    assert.deepEqual(
      snapshot.pods.map((one) => one.pod.metadata.name),
      ["a"],
    );
  await end();
});
