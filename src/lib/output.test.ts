import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { FakeClock, SystemClock } from "./clock.ts";
import { type ChunkWriter, FdWriter, LineSink, StreamWriter, writerFor } from "./output.ts";

/** A writer that finishes when the test says so. */
class ManualWriter implements ChunkWriter {
  readonly chunks: string[] = [];
  private done: ((error: Error | undefined) => void) | undefined;
  write(chunk: Uint8Array, done: (error: Error | undefined) => void): void {
    assert.equal(this.done, undefined, "only one write may be in flight");
    this.chunks.push(Buffer.from(chunk).toString());
    this.done = done;
  }
  close(): void {}
  finish(error?: Error): void {
    const done = this.done;
    this.done = undefined;
    done?.(error);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Both ends of a pipe; the writing end blocks, as a shell's pipe does. */
async function openFifo(t: TestContext): Promise<{ reader: number; writer: number }> {
  const directory = mkdtempSync(join(tmpdir(), "output-"));
  const fifo = join(directory, "pipe");
  await new Promise((resolve) => spawn("mkfifo", [fifo]).on("close", resolve));
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(fifo, constants.O_WRONLY);
  t.after(() => {
    closeSync(writer);
    rmSync(directory, { recursive: true });
  });
  return { reader, writer };
}

const failure = (code: string): Error => Object.assign(new Error(code), { code });

test("lines of one turn go out in one write, later ones wait for it", async () => {
  const writer = new ManualWriter();
  const sink = new LineSink({ writer, clock: new FakeClock() });
  sink.write("a\n");
  sink.write("b\n");
  await turn();
  sink.write("c\n");
  await turn();
  assert.deepEqual(writer.chunks, ["a\nb\n"]);
  writer.finish();
  await turn();
  assert.deepEqual(writer.chunks, ["a\nb\n", "c\n"]);
});

test("what does not fit is dropped, counted, and said when there is room", async () => {
  const writer = new ManualWriter();
  const sink = new LineSink({ writer, clock: new FakeClock(), limit: 10 });
  sink.write("12345\n");
  await turn();
  sink.write("abc\n");
  sink.write("too long\n");
  sink.write("too\nlong\n");
  assert.equal(sink.dropped, 3);
  writer.finish();
  await turn();
  assert.equal(writer.chunks[1], "... dropped 3 lines: the reader was too slow\nabc\n");
  writer.finish();
  assert.equal(sink.dropped, 0);
});

test("a failed write counts its lines, the reader's leaving is told once, and the next write tries again", async () => {
  const writer = new ManualWriter();
  let broken = 0;
  const sink = new LineSink({ writer, clock: new FakeClock(), onBroken: () => void broken++ });
  for (const code of ["ENOSPC", "EPIPE", "EPIPE"]) {
    sink.write("x\ny\n");
    await turn();
    writer.finish(failure(code));
    await turn();
  }
  assert.equal(broken, 1);
  assert.equal(sink.isBroken, true);
  sink.write("back\n");
  await turn();
  writer.finish();
  assert.equal(writer.chunks.at(-1), "... dropped 6 lines: the reader was too slow\nback\n");
});

test("flush resolves when all is out, or false when the time is over", async () => {
  const clock = new FakeClock();
  const writer = new ManualWriter();
  const sink = new LineSink({ writer, clock });
  assert.equal(await sink.flush({ timeoutMs: 10 }), true);
  sink.write("a\n");
  await turn();
  const late = sink.flush({ timeoutMs: 10 });
  await clock.advance(10);
  assert.equal(await late, false);
  const good = sink.flush({ timeoutMs: 10 });
  writer.finish();
  assert.equal(await good, true);
  assert.equal(clock.waiting, 0);
});

test("send waits for room instead of dropping, and ends when the reader leaves", async () => {
  const writer = new ManualWriter();
  const sink = new LineSink({ writer, clock: new FakeClock(), limit: 8 });
  const { signal } = new AbortController();
  assert.equal(await sink.send("larger than the limit\n", { signal }), true);
  const second = sink.send("second\n", { signal });
  await turn();
  assert.equal(writer.chunks.length, 1);
  writer.finish();
  assert.equal(await second, true);
  await turn();
  const third = sink.send("third\n", { signal });
  await turn();
  writer.finish(failure("EPIPE"));
  assert.equal(await third, false);
});

test("send stops waiting when its signal aborts", async () => {
  const sink = new LineSink({ writer: new ManualWriter(), clock: new FakeClock(), limit: 2 });
  const controller = new AbortController();
  await sink.send("full\n", controller);
  const waiting = sink.send("more\n", controller);
  controller.abort("stop");
  await assert.rejects(waiting, (error) => error === "stop");
});

test("a full pipe neither blocks nor loses: the rest goes out when it is read", async (t) => {
  const clock = new SystemClock();
  const { reader, writer: shared } = await openFifo(t);
  const sink = new LineSink({ writer: writerFor(shared, clock), clock });
  const text = `${"x".repeat(99)}\n`.repeat(5000);
  sink.write(text);
  assert.equal(await sink.flush({ timeoutMs: 30 }), false, "64 KiB is all that a pipe takes");
  let read = "";
  const drained = sink.flush({ timeoutMs: 10_000 });
  const buffer = Buffer.alloc(64 * 1024);
  while (read.length < text.length) {
    try {
      read += buffer.toString("latin1", 0, readSync(reader, buffer));
    } catch {
      await turn();
    }
  }
  assert.equal(await drained, true);
  assert.equal(read, text);
  closeSync(reader);
  sink.write("nobody reads\n");
  await sink.flush({ timeoutMs: 10_000 });
  assert.equal(sink.isBroken, true);
  sink.close();
});

for (const kind of ["socket", "pipe"] as const) {
  test(`a process whose reader of a ${kind} has stopped still ends at once`, async (t) => {
    const program = `
      const load = async (name) => { const all = await import(name); return all.default ?? all; };
      const { SystemClock } = await load("./src/lib/clock.ts");
      const { LineSink, writerFor } = await load("./src/lib/output.ts");
      const clock = new SystemClock();
      const sink = new LineSink({ writer: writerFor(1, clock), clock });
      sink.write("y".repeat(900000) + "\\n");
      process.exit((await sink.flush({ timeoutMs: 50 })) ? 1 : 0);
    `;
    const ends = kind === "pipe" ? await openFifo(t) : undefined;
    const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      // Node's own "pipe" is a socket. In both cases nobody reads.
      stdio: ["ignore", ends?.writer ?? "pipe", "inherit"],
    });
    child.stdout?.pause();
    const code = await new Promise((resolve) => child.on("exit", resolve));
    assert.equal(code, 0, "the buffer was full and the exit did not wait for the reader");
  });
}

test("a file keeps its shared offset, and a broken off line does not swallow the next", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "output-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "log");
  const fd = openSync(file, "a");
  const clock = new SystemClock();
  for (const line of ["one\n", "two\n"]) {
    const sink = new LineSink({ writer: writerFor(fd, clock), clock });
    sink.write(line);
    await sink.flush({ timeoutMs: 10_000 });
    sink.close();
  }
  closeSync(fd);
  assert.equal(readFileSync(file, "utf8"), "one\ntwo\n");
});

test("a closed descriptor fails the write without an exception", async () => {
  const fd = openSync("/dev/null", "w");
  closeSync(fd);
  const error = await new Promise((resolve) => new FdWriter(fd, new SystemClock()).write(Buffer.from("x\n"), resolve));
  assert.ok(error instanceof Error);
});

test("a stream that fails does not end the process, and later writes fail too", async () => {
  const stream = new PassThrough();
  const writer = new StreamWriter(stream);
  stream.destroy(failure("ECONNRESET"));
  await turn();
  const error = await new Promise((resolve) => writer.write(Buffer.from("x"), resolve));
  assert.ok(error instanceof Error);
  assert.equal(writer.error?.message, "ECONNRESET");
});
