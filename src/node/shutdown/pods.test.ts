import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { AbortedError } from "../../lib/abort.ts";
import { shutdownPods } from "./pods.ts";

const made = (name: string, grace: number) =>
  pod(name).container(name).with({ terminationGracePeriodSeconds: grace }).build();

test("pods are ended within their time, and have stopped when nothing of them runs", async () => {
  const ring = new FakeRing({ slow: { ignoresTerm: true } });
  await ring.want(made("quick", 30), made("slow", 30));
  const pods = shutdownPods(ring.pool);
  const active = pods.active();
  assert.deepEqual(active.map(({ metadata }) => metadata.name).sort(), ["quick", "slow"]);
  let isDone = false;
  const stopped = pods.stopped(active, new AbortController()).then(() => {
    isDone = true;
  });
  for (const each of active) pods.terminate(each, 7);
  await ring.clock.advance(6999);
  assert.equal(ring.status("quick")?.phase, "Failed");
  assert.equal(isDone, false);
  await ring.clock.advance(2);
  await stopped;
  const status = ring.status("slow");
  assert.deepEqual(
    [status?.phase, status?.reason, status?.message],
    ["Failed", "Terminated", "Pod was terminated in response to imminent node shutdown."],
  );
  const disruption = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.deepEqual(
    [disruption?.status, disruption?.reason, disruption?.message],
    ["True", "TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."],
  );
  assert.deepEqual(pods.active(), []);
  ring.stopAgent();
});

test("waiting for pods can be given up", async () => {
  const ring = new FakeRing({ slow: { ignoresTerm: true } });
  await ring.want(made("slow", 300));
  const pods = shutdownPods(ring.pool);
  const limit = new AbortController();
  const stopped = pods.stopped(pods.active(), limit);
  limit.abort(new AbortedError());
  await assert.rejects(stopped, AbortedError);
  ring.stopAgent();
});

test("pods that are being stopped have to end in time too; those that have stopped do not count", () => {
  const phases = { runs: "syncing", deleted: "stopping", over: "stopped", away: "gone" } as const;
  const pods = shutdownPods({
    uids: () => [...Object.keys(phases), "unknown"],
    worker: (uid) => {
      const phase = phases[uid as keyof typeof phases];
      return phase && { pod: made(uid, 1), life: { phase }, evict: () => undefined };
    },
    isFinished: () => true,
    onStatus: () => undefined,
  });
  assert.deepEqual(
    pods.active().map(({ metadata }) => metadata.name),
    ["runs", "deleted"],
  );
});

test("what is ended for a shutdown counts until the machine is started again", () => {
  const failures: object[] = [];
  const pods = shutdownPods({
    uids: () => ["a"],
    worker: () => ({
      pod: made("a", 1),
      life: { phase: "syncing" },
      evict: (failure, grace) => void failures.push({ ...failure, grace }),
    }),
    isFinished: () => false,
    onStatus: () => undefined,
  });
  pods.terminate(made("a", 1), 5);
  const message = "Pod was terminated in response to imminent node shutdown.";
  assert.deepEqual(failures, [{ reason: "Terminated", message, disruption: message, untilReboot: true, grace: 5 }]);
});

test("pods that have stopped already are not waited for", async () => {
  const pods = shutdownPods({
    uids: () => [],
    worker: () => undefined,
    isFinished: () => true,
    onStatus: () => undefined,
  });
  await pods.stopped([made("a", 1)], new AbortController());
});
