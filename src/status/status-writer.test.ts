import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod, PodStatus } from "../model/generated/types.ts";
import { StatusWriter } from "./status-writer.ts";

interface PatchBody {
  readonly metadata: { readonly uid: string };
  readonly status: PodStatus;
}

/** One pod on a server and in the ring. */
function site() {
  const clock = new FakeClock();
  const world = {
    copy: {
      metadata: { name: "web", namespace: "ns", uid: "u1", resourceVersion: "5" },
      spec: { containers: [] },
      status: { phase: "Pending" },
    } as Pod | undefined,
    status: undefined as PodStatus | undefined,
    finished: false,
    isBusy: false,
    /** Runs while a request is on its way. */
    during: undefined as (() => void) | undefined,
  };
  const patches: PatchBody[] = [];
  const deletes: { uid?: string; graceSeconds?: number }[] = [];
  const failures: ApiError[] = [];
  let version = 5;
  const fail = (): void => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
  };
  const api = {
    patch: async (_resource: unknown, { body }: { body: PatchBody }) => {
      fail();
      world.during?.();
      patches.push(body);
      assert.ok(world.copy);
      const metadata = { ...world.copy.metadata, resourceVersion: String(++version) };
      return { ...world.copy, metadata, status: { ...world.copy.status, ...body.status } };
    },
    delete: async (_resource: unknown, at: { uid?: string; graceSeconds?: number }) => {
      fail();
      world.during?.();
      deletes.push(at);
    },
  };
  const measured: number[] = [];
  const writer = new StatusWriter({
    measured: (tookMs) => void measured.push(tookMs),
    isBusy: () => world.isBusy,
    // The fake speaks of pods only.
    api: api as never,
    clock,
    log: silent,
    pods: { statusOf: () => world.status, copyOf: () => world.copy, isFinished: () => world.finished },
  });
  const wake = async (): Promise<void> => {
    writer.wake("u1");
    await clock.advance(0);
  };
  return { clock, world, patches, deletes, failures, writer, wake, measured };
}

test("a new status is sent once, with the UID it is meant for", async () => {
  const { world, patches, wake } = site();
  world.status = { phase: "Running" };
  await wake();
  await wake();
  assert.deepEqual(patches, [{ metadata: { uid: "u1" }, status: { phase: "Running" } }]);
});

test("our own answer counts until the watch has caught up", async () => {
  const { world, patches, wake } = site();
  world.status = { phase: "Running" };
  await wake();
  // The watch still has version 5; another change must be told against what was answered.
  world.status = { phase: "Running", message: "m" };
  await wake();
  assert.deepEqual(patches.at(-1)?.status, { message: "m" });
});

test("wake-ups during a request melt into one with the newest status", async () => {
  const { clock, world, patches, writer } = site();
  for (const message of ["a", "b", "c"]) {
    world.status = { phase: "Running", message };
    writer.wake("u1");
  }
  await clock.advance(0);
  assert.deepEqual(
    patches.map(({ status }) => status.message),
    ["c"],
  );
});

test("a failure is tried again until the newest status is there", async () => {
  const { clock, world, patches, failures, writer } = site();
  failures.push(new ApiError("Unavailable", "away"), new ApiError("TooManyRequests", "slow down"));
  world.status = { phase: "Pending", message: "old" };
  writer.wake("u1");
  await clock.advance(0);
  world.status = { phase: "Running" };
  await clock.advance(2000);
  assert.deepEqual(
    patches.map(({ status }) => status.phase),
    ["Running"],
  );
});

test("a status whose pod the server does not know is sent again until the watch reports its deletion", async () => {
  const { clock, world, patches, failures, writer, wake } = site();
  failures.push(new ApiError("NotFound", "gone"), new ApiError("Conflict", "another UID"));
  world.status = { phase: "Running" };
  await wake();
  assert.equal(patches.length, 0);
  await clock.advance(1000);
  assert.deepEqual(
    patches.map(({ status }) => status.phase),
    ["Running"],
  );
  world.status = { phase: "Failed" };
  failures.push(new ApiError("NotFound", "gone"));
  await wake();
  world.copy = undefined;
  writer.forget("u1");
  await clock.advance(60_000);
  assert.equal(patches.length, 1, "sent for a pod that was deleted");
});

test("a deletion that a server without its pods refuses is sent again, ever more seldom", async () => {
  const { clock, world, deletes, failures, wake } = site();
  assert.ok(world.copy);
  const metadata = { ...world.copy.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
  world.copy = { ...world.copy, metadata, status: { phase: "Failed" } };
  world.finished = true;
  for (let time = 0; time < 10; time++) failures.push(new ApiError("NotFound", "gone"));
  await wake();
  await clock.advance(5000);
  assert.ok(failures.length > 3, `${10 - failures.length} requests within 5 s`);
  await clock.advance(120_000);
  assert.equal(deletes.length, 1);
  await clock.advance(120_000);
  assert.equal(deletes.length, 1, "deleted again");
});

test("a pod is removed only when asked for, final and with nothing left", async () => {
  const { world, deletes, wake } = site();
  world.status = { phase: "Failed" };
  await wake();
  assert.deepEqual(deletes, []);
  assert.ok(world.copy);
  world.copy = {
    ...world.copy,
    metadata: { ...world.copy.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", resourceVersion: "9" },
    status: { phase: "Failed" },
  };
  await wake();
  assert.deepEqual(deletes, []);
  world.finished = true;
  await wake();
  assert.deepEqual(
    deletes.map(({ uid, graceSeconds }) => [uid, graceSeconds]),
    [["u1", 0]],
  );
  await wake();
  assert.equal(deletes.length, 1);
});

test("a mirror is never removed from here", async () => {
  const { world, deletes, wake } = site();
  assert.ok(world.copy);
  const annotations = { "kubernetes.io/config.mirror": "u1" };
  world.copy = {
    ...world.copy,
    metadata: { ...world.copy.metadata, annotations, deletionTimestamp: "2026-01-01T00:00:00Z" },
    status: { phase: "Failed" },
  };
  world.finished = true;
  await wake();
  assert.deepEqual(deletes, []);
});

test("it ends with its signal", async () => {
  const { writer } = site();
  const stop = manyListeners();
  const running = writer.run(stop.signal);
  stop.abort();
  await running;
});

const starting = (condition: string): PodStatus => ({
  phase: "Pending",
  conditions: [{ type: "PodReadyToStartContainers", status: condition }],
  containerStatuses: [
    {
      name: "web",
      image: "i",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: "ContainerCreating" } },
    },
  ],
});

test("what is told of a usual start waits for more of it, and no more than a moment", async () => {
  const { clock, world, patches, wake } = site();
  world.status = starting("False");
  await wake();
  world.status = starting("True");
  await wake();
  assert.equal(patches.length, 0);
  await clock.advance(499);
  assert.equal(patches.length, 0);
  await clock.advance(1);
  assert.deepEqual(
    patches.map(({ status }) => status.conditions?.[0]?.status),
    ["True"],
  );
});

test("while pods wait for their turn the wait goes on, for ten seconds at most", async () => {
  for (const [busyMs, toldMs] of [
    [0, 500],
    [2200, 2500],
    [60_000, 10_000],
  ] as const) {
    const { clock, world, patches, wake } = site();
    world.isBusy = true;
    world.status = starting("False");
    const began = clock.now().mono;
    await wake();
    while (patches.length === 0) {
      await clock.advance(100);
      if (clock.now().mono - began >= busyMs) world.isBusy = false;
    }
    assert.equal(clock.now().mono - began, toldMs, `busy for ${busyMs} ms`);
  }
});

test("that it runs, or cannot start, is told at once, and ends the wait", async () => {
  const { clock, world, patches, wake } = site();
  world.status = starting("False");
  await wake();
  world.status = { phase: "Running" };
  await wake();
  assert.deepEqual(
    patches.map(({ status }) => status.phase),
    ["Running"],
  );
  await clock.advance(10_000);
  assert.equal(patches.length, 1);
  const failing = site();
  const [container] = starting("True").containerStatuses ?? [];
  assert.ok(container);
  const state = { waiting: { reason: "ErrImagePull" } };
  failing.world.status = { ...starting("True"), containerStatuses: [{ ...container, state }] };
  await failing.wake();
  assert.equal(failing.patches.length, 1);
});

test("it is measured how long a status takes to reach the server, failed tries included", async () => {
  const { clock, world, failures, wake, measured } = site();
  await wake();
  assert.deepEqual(measured, []);
  failures.push(new ApiError("Unavailable", "away"));
  world.status = { phase: "Running" };
  await wake();
  assert.deepEqual(measured, []);
  await clock.advance(1000);
  assert.equal(measured.length, 1);
  assert.ok((measured[0] ?? 0) >= 100 && (measured[0] ?? 0) <= 1000, String(measured[0]));
  await wake();
  assert.equal(measured.length, 1);
});

test("what is forgotten during an update is not remembered after it", async () => {
  const { world, patches, writer, wake } = site();
  world.during = () => writer.forget("u1");
  world.status = { phase: "Running" };
  await wake();
  world.during = undefined;
  await wake();
  assert.equal(patches.length, 2, "the first response was remembered");
});

test("what is forgotten during its deletion is not remembered after it; a failed deletion is tried again", async () => {
  const { clock, world, deletes, failures, writer, wake } = site();
  assert.ok(world.copy);
  const metadata = { ...world.copy.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
  world.copy = { ...world.copy, metadata, status: { phase: "Failed" } };
  world.finished = true;
  failures.push(new ApiError("Unavailable", "away"));
  await wake();
  assert.equal(deletes.length, 0);
  world.during = () => writer.forget("u1");
  await clock.advance(1000);
  assert.equal(deletes.length, 1);
  world.during = undefined;
  await wake();
  assert.equal(deletes.length, 2, "the deletion was remembered");
});
