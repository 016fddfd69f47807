import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing, MemoryFiles } from "../../../test/support/ring.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import type { Pod } from "../../model/generated/types.ts";
import { StopRecord } from "./stop-record.ts";

const MESSAGE = "The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. ";
const FAILURE = { reason: "Evicted", message: MESSAGE, disruption: MESSAGE };
const uid = "uid-of-web";
const web = (): Pod => pod().container("main").build();

async function evicted(ring: FakeRing, of: Pod = web()): Promise<void> {
  ring.source = "api";
  await ring.restartAgent();
  await ring.want(of);
  ring.pool.worker(uid)?.evict(FAILURE, 5);
  await ring.clock.advance(0);
}

async function states(ring: FakeRing): Promise<string[]> {
  return (await ring.containers()).map(({ name, state }) => `${name} ${state}`);
}

test("an eviction that an agent began is finished by the next one", async () => {
  const ring = new FakeRing({ main: { ignoresTerm: true } });
  await evicted(ring);
  await ring.restartAgent();
  await ring.want(web());
  assert.deepEqual(ring.pool.worker(uid)?.life.stop, { graceSeconds: 5, failure: FAILURE });
  await ring.clock.advance(10_000);
  assert.deepEqual(await states(ring), ["main exited"]);
  const { phase, reason, message, conditions } = ring.status() ?? {};
  assert.deepEqual({ phase, reason, message }, { phase: "Failed", reason: "Evicted", message: MESSAGE });
  const disruption = conditions?.find(({ type }) => type === "DisruptionTarget");
  assert.equal(disruption?.reason, "TerminationByKubelet");
  assert.equal(disruption?.message, MESSAGE);
  ring.stopAgent();
});

test("an evicted pod whose containers have ended is not started again by the next agent", async () => {
  const ring = new FakeRing();
  await evicted(ring);
  await ring.clock.advance(5000);
  assert.deepEqual(await states(ring), ["main exited"]);
  await ring.restartAgent();
  // The API server did not get the status of before.
  await ring.want(web());
  await ring.clock.advance(60_000);
  assert.deepEqual(await states(ring), ["main exited"]);
  assert.equal(ring.status()?.reason, "Evicted");
  ring.stopAgent();
});

test("an evicted pod is not started again while the disk takes long to tell of its eviction", async () => {
  const ring = new FakeRing();
  await evicted(ring);
  await ring.clock.advance(5000);
  ring.stopAgent();
  const readTail = ring.files.readTail.bind(ring.files);
  ring.files.readTail = async (path, bytes) => {
    if (path.endsWith("/stop.json")) await ring.clock.sleep(10_000);
    return await readTail(path, bytes);
  };
  await ring.restartAgent();
  await ring.want(web());
  await ring.clock.advance(60_000);
  assert.equal(ring.runtime.control.count("startContainer"), 1);
  assert.equal(ring.status()?.reason, "Evicted");
  ring.stopAgent();
});

test("an evicted pod of which the runtime has nothing left is not started again by the next agent", async () => {
  const ring = new FakeRing();
  await evicted(ring);
  await ring.clock.advance(5000);
  const discarded = ring.pool.discard(uid, "all");
  await ring.clock.advance(0);
  await discarded;
  assert.deepEqual(await states(ring), []);
  await ring.restartAgent();
  await ring.want(web());
  await ring.clock.advance(60_000);
  assert.deepEqual(await states(ring), []);
  assert.equal(ring.status()?.reason, "Evicted");
  assert.equal(ring.status()?.phase, "Failed");
  ring.stopAgent();
});

test("the record goes with the pod: one of the same UID that comes back runs", async () => {
  const ring = new FakeRing();
  await evicted(ring);
  await ring.clock.advance(5000);
  await ring.want();
  await ring.clock.advance(5000);
  await ring.want(web());
  assert.equal(ring.status()?.phase, "Running");
  ring.stopAgent();
});

test("a static pod that was preempted runs again with the next agent, as in Kubernetes", async () => {
  const ring = new FakeRing();
  const isStatic = { "kubernetes.io/config.source": "file" };
  const statically = { ...web(), metadata: { ...web().metadata, annotations: isStatic } };
  await ring.want(statically);
  ring.pool.worker(uid)?.evict({ reason: "Preempting", message: "m" }, 1);
  await ring.clock.advance(5000);
  assert.equal(ring.status()?.phase, "Failed");
  await ring.restartAgent();
  await ring.want(statically);
  await ring.clock.advance(60_000);
  assert.equal(ring.status()?.phase, "Running");
  ring.stopAgent();
});

test("what ended for a shutdown of the machine runs again after it, and not before", async () => {
  for (const { boot, phase } of [
    { boot: "boot-1", phase: "Failed" },
    { boot: "boot-2", phase: "Running" },
  ]) {
    const ring = new FakeRing();
    ring.bootId = "boot-1";
    ring.source = "api";
    await ring.restartAgent();
    await ring.want(web());
    ring.pool.worker(uid)?.evict({ reason: "Terminated", message: "m", untilReboot: true }, 1);
    await ring.clock.advance(5000);
    assert.equal(ring.status()?.phase, "Failed");
    ring.bootId = boot;
    await ring.restartAgent();
    await ring.want(web());
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, phase, boot);
    ring.stopAgent();
  }
});

test("a disk that hangs does not keep an evicted pod alive, and one that is full neither", async () => {
  for (const write of [() => new Promise<void>(() => undefined), () => Promise.reject(new Error("no space left"))]) {
    const ring = new FakeRing();
    const { writeFile } = ring.files;
    ring.files.writeFile = (path, text) =>
      path.endsWith("/stop.json") ? write() : writeFile.call(ring.files, path, text);
    await evicted(ring);
    await ring.clock.advance(2000);
    assert.deepEqual(await states(ring), ["main exited"]);
    assert.equal(ring.status()?.reason, "Evicted");
    ring.stopAgent();
  }
});

test("a pod that was deleted leaves no record", async () => {
  const ring = new FakeRing();
  const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 1 };
  await ring.want(web());
  await ring.want({ ...web(), metadata: { ...web().metadata, ...deleted } });
  await ring.clock.advance(5000);
  assert.equal(ring.pool.isFinished(uid), true);
  assert.equal(
    [...ring.files.entries.keys()].some((path) => path.endsWith("stop.json")),
    false,
  );
  ring.stopAgent();
});

/** A record in a directory that is a variable, and what was written to it. */
function made(write?: () => Promise<void>) {
  const files = new MemoryFiles();
  const writes: string[] = [];
  const record = (): StopRecord =>
    new StopRecord({
      clock: new FakeClock(),
      log: silent,
      bootId: "b",
      directory: "/root/pods/u",
      files: {
        readTail: (path, bytes) => files.readTail(path, bytes),
        removeFile: (path) => files.removeFile(path),
        writeFile: (path, text) => {
          writes.push(text);
          return write?.() ?? files.writeFile(path, text);
        },
      },
    });
  return { record, writes };
}

test("a record has all that decides about the end of the pod", async () => {
  for (const more of [{}, { disruption: "d" }, { mayEndWell: true }, { untilReboot: true }]) {
    const { record } = made();
    const stop = { graceSeconds: 7, failure: { reason: "Evicted", message: "m".repeat(2000), ...more } };
    await record().save(stop, { signal: new AbortController().signal });
    assert.deepEqual(await record().load(), stop);
  }
});

test("the same stop is recorded once, also if an earlier agent did, and again after it was removed", async () => {
  const { record, writes } = made();
  const { signal } = new AbortController();
  const stop = { graceSeconds: 7, failure: FAILURE };
  const first = record();
  await first.save(stop, { signal });
  await first.save({ ...stop, graceSeconds: 1 }, { signal });
  assert.equal(writes.length, 1);
  const second = record();
  await second.load();
  await second.save(stop, { signal });
  assert.equal(writes.length, 1);
  await second.remove();
  assert.equal(await record().load(), undefined);
  await second.save(stop, { signal });
  assert.equal(writes.length, 2);
});

test("an agent that stops meanwhile is no failure of the disk", async () => {
  const { record } = made(() => new Promise(() => undefined));
  const stop = new AbortController();
  const saved = record().save({ graceSeconds: 1, failure: FAILURE }, { signal: stop.signal });
  stop.abort(new Error("stopped"));
  await assert.rejects(saved, /stopped/);
});

for (const [name, text] of [
  ["empty", ""],
  ["cut off", '{"graceSeconds":1,"failure":{"rea'],
  ["of another shape", '{"failure":{"reason":1,"message":[]}}'],
  ["without a grace period", '{"failure":{"reason":"Evicted","message":"m"}}'],
  ["null", "null"],
] as const) {
  test(`a record that is ${name} counts as none`, async () => {
    const record = new StopRecord({
      clock: new FakeClock(),
      log: silent,
      bootId: "b",
      files: {
        readTail: () => Promise.resolve(text),
        writeFile: () => Promise.resolve(),
        removeFile: () => Promise.resolve(),
      },
      directory: "/root/pods/u",
    });
    assert.equal(await record.load(), undefined);
  });
}
