import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { LogSize } from "./log-size.ts";

test("a log is kept open only if it is measured at least eight times an interval", async () => {
  let opens = 0;
  const open = async () => {
    opens++;
    return { size: () => 5, close: () => undefined };
  };
  const files = { open, size: async () => 5 };
  const log = new LogSize("/log", { files, clock: new FakeClock(), intervalMs: () => 10_000 });
  await log.expect(1251);
  assert.deepEqual([opens, log.readOpen()], [0, undefined]);
  await log.expect(1250);
  await log.expect(1250);
  assert.deepEqual([opens, log.readOpen()], [1, 5]);
});

test("a disk that fails under an open log is an error of the next read, not of the timer that looks at it", async () => {
  let isBroken = false;
  const size = (): number => {
    if (isBroken) throw Object.assign(new Error("EIO: i/o error, fstat"), { code: "EIO" });
    return 5;
  };
  const open = async () => ({ size, close: () => undefined });
  const log = new LogSize("/log", {
    files: { open, size: async () => size() },
    clock: new FakeClock(),
    intervalMs: () => 10_000,
  });
  await log.expect(100);
  assert.equal(log.readOpen(), 5);
  isBroken = true;
  assert.equal(log.readOpen(), undefined);
  await assert.rejects(log.read(), /EIO/);
  isBroken = false;
  assert.equal(await log.read(), 5);
});
