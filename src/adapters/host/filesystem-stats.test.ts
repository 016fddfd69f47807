import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import { test } from "node:test";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { FilesystemMeter, type FilesystemStats } from "./filesystem-stats.ts";

test("a filesystem is measured", async () => {
  const { blocks, bsize } = statfsSync("/");
  const { capacityBytes, availableBytes } = await new FilesystemMeter(new SystemClock()).measure("/");
  assert.equal(capacityBytes, blocks * bsize);
  assert.ok(availableBytes > 0 && availableBytes <= capacityBytes);
});

test("a path that does not exist is an error that names it", async () => {
  const missing = new FilesystemMeter(new SystemClock()).measure("/does/not/exist");
  await assert.rejects(missing, { code: "NotFound", message: /^measure filesystem of \/does\/not\/exist: / });
});

test("a filesystem that hangs is given up, asked only once, and measured again once it answers", async () => {
  const clock = new FakeClock();
  const answers: ((stats: FilesystemStats) => void)[] = [];
  const meter = new FilesystemMeter(clock, () => new Promise((resolve) => answers.push(resolve)));
  for (let tries = 0; tries < 3; tries++) {
    const hanging = meter.measure("/images").catch((error: unknown) => error);
    await clock.advance(5000);
    const error = await hanging;
    assert.match(String(error), /measure filesystem of \/images: no answer within 5 s/);
    assert.equal((error as { code?: string }).code, "Timeout");
  }
  assert.equal(answers.length, 1, "it holds one thread");
  const waiting = meter.measure("/images");
  const stats = { capacityBytes: 2, availableBytes: 1 };
  answers[0]?.(stats);
  assert.deepEqual(await waiting, stats);
  await clock.advance(0);
  void meter.measure("/images").catch(() => undefined);
  assert.equal(answers.length, 2);
});

test("a filesystem that fails after it was given up is no unhandled error", async () => {
  const clock = new FakeClock();
  let fail: (error: Error) => void = () => undefined;
  const meter = new FilesystemMeter(clock, () => new Promise((_resolve, reject) => (fail = reject)));
  const hanging = meter.measure("/images").catch(() => "given up");
  await clock.advance(5000);
  assert.equal(await hanging, "given up");
  fail(new Error("the disk is dead"));
  await clock.advance(0);
});
