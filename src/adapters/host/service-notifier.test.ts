import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { ServiceNotifier } from "./service-notifier.ts";

function started(env: Record<string, string>, send?: () => Promise<void>, stalled?: () => string | undefined) {
  const clock = new FakeClock();
  const told: string[] = [];
  const warnings: string[] = [];
  const stop = new AbortController();
  const supervisor = new ServiceNotifier({
    clock,
    env,
    pid: 7,
    log: { ...silent, warn: (message: string) => void warnings.push(message) },
    send: send ?? (async (socket, text) => void told.push(`${socket} ${text}`)),
  });
  const running = supervisor.run(stop, stalled);
  const end = async (): Promise<void> => {
    stop.abort(new AbortedError());
    await running;
  };
  return { clock, told, warnings, end };
}

test("without a socket nothing is sent", async () => {
  const { told, end } = started({ WATCHDOG_USEC: "4000000" });
  await end();
  assert.deepEqual(told, []);
});

test("the service manager is notified that the agent is ready, alive and stopping", async () => {
  const { clock, told, end } = started({ NOTIFY_SOCKET: "@s", WATCHDOG_USEC: "4000000", WATCHDOG_PID: "7" });
  await clock.advance(1999);
  assert.deepEqual(told, ["@s READY=1"]);
  await clock.advance(1);
  await clock.advance(2000);
  await end();
  assert.deepEqual(told, ["@s READY=1", "@s WATCHDOG=1", "@s WATCHDOG=1", "@s STOPPING=1"]);
});

test("an agent that makes no progress does not say that it is alive", async () => {
  let reason: string | undefined;
  const env = { NOTIFY_SOCKET: "@s", WATCHDOG_USEC: "4000000" };
  const { clock, told, warnings, end } = started(env, undefined, () => reason);
  await clock.advance(2000);
  reason = "no call to the runtime has ended for 400 s";
  await clock.advance(4000);
  assert.deepEqual([told, warnings.length], [["@s READY=1", "@s WATCHDOG=1"], 2]);
  reason = undefined;
  await clock.advance(2000);
  assert.equal(told.at(-1), "@s WATCHDOG=1");
  assert.equal(told.length, 3);
  await end();
});

test("a watchdog of another process is not served", async () => {
  const { clock, told, end } = started({ NOTIFY_SOCKET: "/s", WATCHDOG_USEC: "4000000", WATCHDOG_PID: "8" });
  await clock.advance(60_000);
  await end();
  assert.deepEqual(told, ["/s READY=1", "/s STOPPING=1"]);
});

for (const time of ["1000000", "0", "-5", "soon"]) {
  test(`a watchdog of ${time} is refused`, () => {
    assert.throws(() => started({ WATCHDOG_USEC: time }), /WATCHDOG_USEC=.* more than 1s/);
  });
}

test("an unreachable service manager is logged once and changes nothing", async () => {
  const refuse = (): Promise<void> => Promise.reject(new Error("no"));
  const { clock, warnings, end } = started({ NOTIFY_SOCKET: "/s", WATCHDOG_USEC: "4000000" }, refuse);
  await clock.advance(2000);
  await clock.advance(2000);
  await end();
  assert.deepEqual(warnings, ["Failed to notify the service manager"]);
});
