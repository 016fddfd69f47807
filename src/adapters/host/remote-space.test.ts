import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import { test } from "node:test";
import { TimeLimitError } from "../../lib/abort.ts";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import type { ExecResult } from "./exec.ts";
import { RemoteSpaceReader } from "./remote-space.ts";

const never = { signal: new AbortController().signal };
const answer = (stdout: string): ExecResult => ({ code: 0, stdout, stderr: "" });

test("the space of a filesystem, as statfs has it", async () => {
  const reader = new RemoteSpaceReader(new SystemClock());
  let found = await reader.read("/proc", never);
  // On a busy machine the child may take longer than a read waits; its answer is there for a later one.
  for (let turn = 0; found === undefined && turn < 20; turn++) found = await reader.read("/proc", never);
  assert.deepEqual(found, {
    device: 0,
    capacityBytes: 0,
    availableBytes: 0,
    usedBytes: 0,
    inodes: statfsSync("/proc").files,
    inodesFree: 0,
  });
});

test("blocks, inodes and what is free of them", async () => {
  const reader = new RemoteSpaceReader(new FakeClock(), async () => answer("100 40 30 4096 1000 900\n"));
  assert.deepEqual(await reader.read("/v", never), {
    device: 0,
    capacityBytes: 409_600,
    availableBytes: 122_880,
    usedBytes: 245_760,
    inodes: 1000,
    inodesFree: 900,
  });
});

test("one that hangs is waited for half a second, asked by one child only, and then left alone for longer and longer", async () => {
  const clock = new FakeClock();
  let asked = 0;
  let fail = (_error: Error): void => undefined;
  const run = (): Promise<ExecResult> => {
    asked++;
    return new Promise((_resolve, reject) => {
      fail = reject;
    });
  };
  const reader = new RemoteSpaceReader(clock, run);
  const reads = [reader.read("/v", never), reader.read("/v", never)];
  await clock.advance(500);
  assert.deepEqual(await Promise.all(reads), [undefined, undefined]);
  assert.equal(asked, 1);
  for (const waitMs of [15_000, 30_000, 60_000]) {
    fail(new TimeLimitError(10_000));
    await clock.advance(waitMs - 1);
    assert.equal(await reader.read("/v", never), undefined);
    const before: number = asked;
    await clock.advance(1);
    const read = reader.read("/v", never);
    await clock.advance(500);
    assert.equal(await read, undefined);
    assert.equal(asked, before + 1, `after ${waitMs} ms`);
  }
});

test("an answer that comes late is there for the next one who asks", async () => {
  const clock = new FakeClock();
  let asked = 0;
  const reader = new RemoteSpaceReader(clock, async () => {
    asked++;
    await clock.sleep(800, never);
    return answer("1 1 1 512 1 1");
  });
  const first = reader.read("/v", never);
  await clock.advance(500);
  assert.equal(await first, undefined);
  const second = reader.read("/v", never);
  await clock.advance(300);
  assert.equal((await second)?.capacityBytes, 512);
  assert.equal(asked, 1);
});

for (const [name, result] of [
  ["that fails", { code: 1, stdout: "", stderr: "Stale file handle" }],
  ["whose answer is not understood", answer("? ? ?")],
] as const) {
  test(`a command ${name} is no space`, async () => {
    const reader = new RemoteSpaceReader(new FakeClock(), async () => result);
    assert.equal(await reader.read("/v", never), undefined);
  });
}
