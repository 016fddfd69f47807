import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { SystemClock } from "../../lib/clock.ts";
import { followKernelLog } from "./kernel-log.ts";

test("a message that is written while the log is followed arrives, as one of a process", async () => {
  const stop = new AbortController();
  const mark = `kubelet-test-${process.pid}-${process.hrtime.bigint()}`;
  const found = new Promise<boolean>((resolve, reject) => {
    followKernelLog(
      { record: ({ text, isKernel }) => text.includes(mark) && resolve(isKernel), lost: () => undefined },
      { signal: stop.signal, clock: new SystemClock() },
    ).catch(reject);
  });
  // A record without a line's end is shown to readers only with the next one, which may not come for minutes.
  writeFileSync("/dev/kmsg", `${mark}\n`);
  assert.equal(await found, false);
  stop.abort();
});
