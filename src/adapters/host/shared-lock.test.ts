import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { HostError } from "./host-error.ts";
import { takeSharedLock } from "./shared-lock.ts";

function site(failures: number) {
  const clock = new FakeClock();
  const world = { tries: 0, released: 0, opened: undefined as (() => void) | undefined };
  const deps = {
    clock,
    log: silent,
    take: async (path: string) => {
      if (world.tries++ < failures) throw new HostError("Locked", `${path} is held by process 7`);
      return { release: () => void world.released++ };
    },
    onOpened: async (_path: string, fn: () => void) => {
      world.opened = fn;
    },
  };
  return { clock, world, deps };
}

test("the lock is waited for, acquired and released", async () => {
  const { clock, world, deps } = site(2);
  const taking = takeSharedLock(deps, { path: "/run/lock" }, manyListeners());
  await clock.advance(499);
  assert.equal(world.tries, 1);
  await clock.advance(501);
  const release = await taking;
  assert.equal(world.tries, 3);
  assert.equal(world.opened, undefined);
  release();
  assert.equal(world.released, 1);
});

test("the next opener of the lock file is reported", async () => {
  const { world, deps } = site(0);
  let heard = 0;
  await takeSharedLock(deps, { path: "/run/lock", onContention: () => void heard++ }, manyListeners());
  world.opened?.();
  assert.equal(heard, 1);
});

test("the wait ends with the agent; any other error is thrown", async () => {
  const { clock, deps } = site(100);
  const stop = manyListeners();
  const taking = takeSharedLock(deps, { path: "/run/lock" }, stop);
  await clock.advance(10);
  stop.abort();
  await assert.rejects(taking);
  const broken = { ...deps, take: () => Promise.reject(new HostError("PermissionDenied", "no")) };
  await assert.rejects(takeSharedLock(broken, { path: "/run/lock" }, manyListeners()), /no/);
});
