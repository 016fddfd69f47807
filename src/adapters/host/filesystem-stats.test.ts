import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import { test } from "node:test";
import { TimeLimitError } from "../../lib/abort.ts";
import { SystemClock } from "../../lib/clock.ts";
import type { ExecOptions, ExecResult } from "./exec.ts";
import { FilesystemMeter } from "./filesystem-stats.ts";
import { HostError } from "./host-error.ts";

const clock = new SystemClock();

/** A meter whose child processes do what the test says. */
function scripted(): { meter: FilesystemMeter; runs: Run[] } {
  const runs: Run[] = [];
  const stat = (_args: readonly string[], options: ExecOptions): Promise<ExecResult> =>
    new Promise((resolve, reject) => {
      runs.push({
        answer: (result) => {
          options.onExit?.();
          resolve({ code: 0, stdout: "", stderr: "", ...result });
        },
        giveUp: () => reject(new TimeLimitError(options.timeoutMs ?? 0)),
        fail: reject,
        exit: () => options.onExit?.(),
      });
    });
  return { meter: new FilesystemMeter(clock, stat), runs };
}

interface Run {
  answer(result: Partial<ExecResult>): void;
  giveUp(): void;
  fail(error: Error): void;
  exit(): void;
}

test("a filesystem is measured", async () => {
  const { blocks, bsize } = statfsSync("/");
  const { capacityBytes, availableBytes } = await new FilesystemMeter(clock).measure("/");
  assert.equal(capacityBytes, blocks * bsize);
  assert.ok(availableBytes > 0 && availableBytes <= capacityBytes);
});

test("a path that does not exist is an error that names it", async () => {
  const missing = new FilesystemMeter(clock).measure("/does/not/exist");
  await assert.rejects(missing, { code: "NotFound", message: /^measure filesystem of \/does\/not\/exist: / });
});

test("callers during a measurement share the next one, which begins when it has ended", async () => {
  const { meter, runs } = scripted();
  const first = meter.measure("/images");
  // What they did before their call is not in the first one.
  const later = Promise.all([meter.measure("/images"), meter.measure("/images")]);
  runs[0]?.answer({ stdout: "100 25 4096\n" });
  assert.deepEqual(await first, { capacityBytes: 409_600, availableBytes: 102_400 });
  // Between the two: nobody begins a third one beside the second.
  const between = meter.measure("/images");
  await new Promise(setImmediate);
  runs[1]?.answer({ stdout: "100 50 4096\n" });
  const stats = { capacityBytes: 409_600, availableBytes: 204_800 };
  assert.deepEqual([...(await later), await between], [stats, stats, stats]);
  assert.equal(runs.length, 2);
  const last = meter.measure("/images");
  runs[2]?.answer({ stdout: "100 75 4096\n" });
  assert.equal((await last).availableBytes, 307_200);
});

test("a filesystem that hangs is not asked again until the child process has ended", async () => {
  const { meter, runs } = scripted();
  const hanging = meter.measure("/images");
  runs[0]?.giveUp();
  await assert.rejects(hanging, { code: "Timeout", message: "measure filesystem of /images: no answer within 5 s" });
  for (let tries = 0; tries < 3; tries++) {
    await assert.rejects(meter.measure("/images"), { code: "Timeout", message: /an earlier call still hangs$/ });
  }
  assert.equal(runs.length, 1);
  runs[0]?.exit();
  const again = meter.measure("/images");
  runs[1]?.answer({ stdout: "2 1 512\n" });
  assert.deepEqual(await again, { capacityBytes: 1024, availableBytes: 512 });
});

test("a filesystem is asked again after a child process that could not be started, and after one that failed", async () => {
  const { meter, runs } = scripted();
  const unstarted = meter.measure("/images");
  runs[0]?.fail(Object.assign(new Error("spawn stat EAGAIN"), { code: "EAGAIN" }));
  await assert.rejects(unstarted, HostError);
  for (const [index, result] of [{ code: 1, stderr: "stat: Input/output error\n" }, { stdout: "? ? ?\n" }].entries()) {
    const failing = meter.measure("/images");
    runs[index + 1]?.answer(result);
    await assert.rejects(failing, { code: "Unknown", message: /^measure filesystem of \/images: stat/ });
  }
  assert.equal(runs.length, 3);
});
