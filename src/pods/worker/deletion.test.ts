import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import type { Pod } from "../../model/generated/types.ts";

/** As the API server shows a pod that it was asked to delete. */
function deleted(of: Pod, graceSeconds: number): Pod {
  const metadata = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: graceSeconds };
  return { ...of, metadata: { ...of.metadata, ...metadata } };
}

const states = async (ring: FakeRing): Promise<string[]> => (await ring.containers()).map(({ state }) => state);
const web = (): Pod => pod().container("main").build();
const uid = "uid-of-web";

test("a deleted pod is stopped with its grace period, and kept until its source no longer has it", async () => {
  const ring = new FakeRing({ main: { ignoresTerm: true } });
  await ring.want(web());
  assert.equal(ring.status()?.phase, "Running");
  await ring.want(deleted(web(), 20));
  assert.deepEqual(await states(ring), ["running"]);
  assert.equal(ring.pool.isFinished(uid), false);
  await ring.clock.advance(20_000);
  assert.deepEqual(await states(ring), ["exited"]);
  assert.equal(ring.status()?.phase, "Failed");
  assert.equal(ring.pool.isFinished(uid), true);
  assert.deepEqual(ring.tornDown, [uid]);
  await ring.want();
  assert.deepEqual(await states(ring), []);
  ring.stopAgent();
});

test("a shorter grace period counts at once, a longer one never", async () => {
  const ring = new FakeRing({ main: { ignoresTerm: true } });
  await ring.want(web());
  await ring.want(deleted(web(), 600));
  await ring.want(deleted(web(), 3));
  await ring.want(deleted(web(), 600));
  await ring.clock.advance(4000);
  assert.deepEqual(await states(ring), ["exited"]);
  ring.stopAgent();
});

test("a pod that was removed and does not end is ended by an eviction, and nothing of it is left", async () => {
  const ring = new FakeRing({ main: { ignoresTerm: true } });
  const patient = web();
  await ring.want({ ...patient, spec: { ...patient.spec, terminationGracePeriodSeconds: 86_400 } });
  await ring.want();
  await ring.clock.advance(60_000);
  assert.deepEqual(await states(ring), ["running"]);
  ring.pool.worker(uid)?.evict({ reason: "Evicted", message: "m" }, 1);
  await ring.clock.advance(10_000);
  assert.deepEqual([await states(ring), ring.pool.worker(uid)], [[], undefined]);
  ring.stopAgent();
});

test("a pod that was deleted before the agent started is only terminated", async () => {
  const ring = new FakeRing();
  await ring.want(deleted(web(), 5));
  assert.deepEqual(await states(ring), []);
  assert.equal(ring.pool.isFinished(uid), true);
  assert.equal(ring.status()?.phase, "Failed");
  ring.stopAgent();
});

test("listeners are notified when nothing is left of a pod", async () => {
  const ring = new FakeRing();
  await ring.want(web());
  const finished: boolean[] = [];
  ring.pool.onStatus((of) => finished.push(ring.pool.isFinished(of)), { signal: new AbortController().signal });
  await ring.want(deleted(web(), 1));
  await ring.clock.advance(5000);
  assert.equal(finished.at(-1), true);
  ring.stopAgent();
});

test("a failed unmount is retried and is not reported as FailedKillPod", async () => {
  const ring = new FakeRing();
  await ring.want(web());
  let tries = 0;
  ring.tearDownVolumes = () => (++tries < 3 ? Promise.reject(new Error("device is busy")) : Promise.resolve());
  await ring.want(deleted(web(), 1));
  assert.equal(ring.pool.isFinished(uid), false);
  await ring.clock.advance(10_000);
  assert.equal(ring.pool.isFinished(uid), true);
  assert.equal(tries, 3);
  const reasons = ring.journal.events(0).map(({ reason }) => reason);
  assert.equal(reasons.includes("FailedKillPod"), false);
  ring.stopAgent();
});

test("a container that cannot be stopped is reported as FailedKillPod", async () => {
  const ring = new FakeRing();
  await ring.want(web());
  ring.runtime.control.fail("stopContainer", new RuntimeError("Unknown", "no such process"), 1);
  await ring.want(deleted(web(), 1));
  await ring.clock.advance(10_000);
  const event = ring.journal.events(0).find(({ reason }) => reason === "FailedKillPod");
  assert.equal(event?.message, "error killing pod: no such process");
  assert.equal(ring.pool.isFinished(uid), true);
  ring.stopAgent();
});

test("a container that can never be stopped does not keep the sandbox from being stopped", async () => {
  const ring = new FakeRing();
  await ring.want(web());
  ring.runtime.control.fail("stopContainer", new RuntimeError("Unknown", "no such process"), 100);
  await ring.want(deleted(web(), 1));
  await ring.clock.advance(10_000);
  assert.ok(ring.runtime.control.count("stopSandbox") > 0);
  const event = ring.journal.events(0).find(({ reason }) => reason === "FailedKillPod");
  assert.equal(event?.message, "error killing pod: no such process");
  assert.deepEqual(await states(ring), ["exited"]);
  assert.equal(ring.pool.isFinished(uid), true);
  ring.stopAgent();
});

test("a container that was only created is stopped without an event, and a failure of that does not count", async () => {
  const ring = new FakeRing();
  ring.runtime.control.delay("startContainer", 60_000);
  await ring.want(web());
  await ring.restartAgent();
  assert.deepEqual(await states(ring), ["created"]);
  ring.runtime.control.fail("stopContainer", new RuntimeError("Unknown", "not running"), 100);
  await ring.want(deleted(web(), 1));
  await ring.clock.advance(1000);
  const reasons = ring.journal.events(0).map(({ reason }) => reason);
  assert.deepEqual(
    reasons.filter((reason) => reason === "Killing" || reason === "FailedKillPod"),
    [],
  );
  assert.equal(ring.pool.isFinished(uid), true);
  ring.stopAgent();
});

test("a container whose processes hang on a lost server is freed a minute after its grace period, and each minute", async () => {
  const ring = new FakeRing();
  await ring.want(web());
  const released: number[] = [];
  const began = ring.clock.now().mono;
  ring.releaseVolumes = async (of) => {
    assert.equal(of, uid);
    released.push((ring.clock.now().mono - began) / 1000);
  };
  ring.runtime.control.delay("stopContainer", 150_000);
  await ring.want(deleted(web(), 20));
  await ring.clock.advance(79_000);
  assert.deepEqual(released, []);
  await ring.clock.advance(71_000);
  assert.deepEqual(released, [80, 140]);
  assert.equal(ring.pool.isFinished(uid), true);
  await ring.clock.advance(600_000);
  assert.deepEqual(released, [80, 140]);
  ring.stopAgent();
});

for (const { name, delayMs, want } of [
  { name: "that gives up after the SIGKILL", delayMs: 35_000, want: 1 },
  { name: "that fails at once", delayMs: 0, want: 0 },
]) {
  test(`a runtime ${name} frees what hangs on a lost server ${want} times`, async () => {
    const ring = new FakeRing();
    await ring.want(web());
    let released = 0;
    ring.releaseVolumes = async () => {
      released++;
      throw new Error("an answer that does not matter");
    };
    ring.runtime.control.delay("stopContainer", delayMs);
    ring.runtime.control.fail("stopContainer", new RuntimeError("Timeout", "no answer"), 1);
    await ring.want(deleted(web(), 20));
    await ring.clock.advance(delayMs);
    assert.equal(released, want);
    ring.stopAgent();
  });
}
