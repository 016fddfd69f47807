import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { AbortedError, TimeLimitError } from "../../lib/abort.ts";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { type ExecOptions, exec, finish } from "./exec.ts";
import { HostError } from "./host-error.ts";
import { isAlive, processStartTime } from "./processes.ts";

const clock = new SystemClock();
const sh = (script: string, options = {}) => exec(clock, ["sh", "-c", script], options);

test("exit code, stdout and stderr are returned, also if the command failed", async () => {
  assert.deepEqual(await sh("echo out; echo err >&2; exit 3"), { code: 3, stdout: "out\n", stderr: "err\n" });
  assert.equal((await sh("kill -TERM $$")).code, undefined);
});

test("stdin is written and closed; a command that does not read it succeeds", async () => {
  assert.equal((await exec(clock, ["cat"], { input: "hello" })).stdout, "hello");
  assert.equal((await exec(clock, ["true"], { input: "x".repeat(1_000_000) })).code, 0);
});

test("output over the limit is truncated and the command still ends", async () => {
  const { code, stdout } = await sh("head -c 300000 /dev/zero | tr '\\0' x", { maxOutputBytes: 1000 });
  assert.deepEqual([code, stdout.length], [0, 1000]);
});

test("commands run in the C locale", async () => {
  assert.match((await exec(clock, ["ls", "/does/not/exist"])).stderr, /No such file or directory/);
});

test("a missing command is NotFound", async () => {
  await assert.rejects(exec(clock, ["no-such-command-at-all"]), (error) => {
    return error instanceof HostError && error.code === "NotFound";
  });
});

test("an argument with a null byte is refused without being shown: it may be a password", async () => {
  await assert.rejects(exec(clock, ["true", "user", "hush\0"]), (error) => {
    return error instanceof HostError && error.code === "InvalidArgument" && !/hush/.test(String(error.stack));
  });
});

/** Starts a command that sleeps; the answer knows when it is gone. */
async function sleeper(
  t: TestContext,
  options: ExecOptions & { clock?: FakeClock },
): Promise<{ done: Promise<unknown>; gone: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), "exec-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "pid");
  const script = `echo $$ > ${file}.tmp; mv ${file}.tmp ${file}; exec sleep 600`;
  const done = exec(options.clock ?? clock, ["sh", "-c", script], options);
  done.catch(() => undefined);
  while (!existsSync(file)) await new Promise((resolve) => setImmediate(resolve));
  const pid = Number(readFileSync(file, "utf8"));
  const identity = { pid, startTime: processStartTime(pid) ?? "" };
  assert.ok(isAlive(identity));
  const gone = async (): Promise<void> => {
    while (isAlive(identity)) await new Promise((resolve) => setImmediate(resolve));
  };
  return { done, gone };
}

test("an abort kills the command and rejects with the reason", async (t) => {
  const controller = new AbortController();
  const { done, gone } = await sleeper(t, { signal: controller.signal });
  const reason = new AbortedError();
  controller.abort(reason);
  await assert.rejects(done, (error) => error === reason);
  await gone();
  await assert.rejects(exec(clock, ["true"], { signal: controller.signal }), (error) => error === reason);
});

test("the time limit kills the command", async (t) => {
  const fake = new FakeClock();
  const { done, gone } = await sleeper(t, { timeoutMs: 1000, clock: fake });
  await fake.advance(1000);
  await assert.rejects(done, (error) => error instanceof TimeLimitError);
  await gone();
});

test("a grandchild that keeps the output open is not waited for", async () => {
  const fake = new FakeClock();
  const done = exec(fake, ["sh", "-c", "sleep 600 & echo $!"]);
  while (fake.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  await fake.advance(500);
  const { code, stdout } = await done;
  assert.match(stdout, /^[1-9]\d*\n$/);
  process.kill(Number(stdout), "SIGKILL");
  assert.equal(code, 0);
});

test("output that is read late, because the event loop was delayed after the exit, is not lost", async () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  // reason: of a child process only its events and streams are used.
  const child = Object.assign(new EventEmitter(), { stdin: null, stdout, stderr }) as unknown as ChildProcess;
  const { signal } = new AbortController();
  let elapse = (): void => undefined;
  const after = (_ms: number, fn: () => void): { cancel(): void } => {
    elapse = fn;
    return { cancel: () => undefined };
  };
  const result = finish(child, { clock: Object.assign(new FakeClock(), { after }), signal });
  child.emit("exit", 0);
  elapse();
  stdout.end("answer");
  assert.deepEqual(await result, { code: 0, stdout: "answer", stderr: "" });
});
