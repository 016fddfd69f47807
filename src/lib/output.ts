import { close, constants, fstatSync, openSync, write } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import type { Abortable } from "./abort.ts";
import type { Clock, Timer } from "./clock.ts";
import { errnoOf } from "./errors.ts";

/** Writes a whole chunk and then calls back once, with the error if it could not. One call at a time. */
export interface ChunkWriter {
  write(chunk: Uint8Array, done: (error: Error | undefined) => void): void;
  close(): void;
}

export interface LineSinkOptions {
  readonly writer: ChunkWriter;
  readonly clock: Clock;
  /** Characters kept while the reader is slow; defaults to 1 MiB. */
  readonly limit?: number;
  /** The text for lost lines, in klog format by default; undefined writes nothing. */
  readonly describeDropped?: (lines: number) => string | undefined;
  /** Called at the first failed write because the reader left; a command ends quietly then. */
  readonly onBroken?: () => void;
}

const DEFAULT_LIMIT = 1024 * 1024;

/**
 * Text to a slow, stopped or vanished reader without ever blocking: one asynchronous write in flight, the rest in a
 * bounded buffer, what does not fit is dropped, counted, and reported once there is room again.
 *
 *   idle ──write──► writing ──done──► idle, or writing the next batch
 *                      └──error──► the batch is counted as lost; the next write tries again
 */
export class LineSink {
  private batch: string[] = [];
  private size = 0;
  private inFlight = 0;
  private lost = 0;
  private scheduled = false;
  private broken = false;
  private waiters: (() => void)[] = [];

  constructor(private readonly options: LineSinkOptions) {}

  /** Takes whole lines (each with its newline). Never blocks, never throws. */
  write(text: string): void {
    if (this.size + this.inFlight + text.length > (this.options.limit ?? DEFAULT_LIMIT)) {
      this.lost += countLines(text);
      return;
    }
    this.batch.push(text);
    this.size += text.length;
    this.schedule();
  }

  /** As `write`, but waits for room instead of dropping: for a command's output. False when the reader has left. */
  async send(text: string, { signal }: Abortable): Promise<boolean> {
    const half = (this.options.limit ?? DEFAULT_LIMIT) / 2;
    while (!this.broken && this.size + this.inFlight > half) await this.changed(signal);
    if (this.broken) return false;
    // Past the check of `write`: one text may be larger than the limit and must still arrive whole.
    this.batch.push(text);
    this.size += text.length;
    this.schedule();
    return true;
  }

  /** The reader left: a write failed with EPIPE or the like. */
  get isBroken(): boolean {
    return this.broken;
  }

  /** Lines lost and not yet reported. */
  get dropped(): number {
    return this.lost;
  }

  /** Resolves true when all is written, false when the time is over first. For the end of a process. */
  async flush({ timeoutMs }: { timeoutMs: number }): Promise<boolean> {
    let late = false;
    const timer = this.options.clock.after(timeoutMs, () => {
      late = true;
      this.notify();
    });
    try {
      while (!late && this.size + this.inFlight > 0) await this.changed();
    } finally {
      timer.cancel();
    }
    return this.size + this.inFlight === 0;
  }

  /** Frees the descriptor or the retry timer. What is not written yet is lost: flush first. */
  close(): void {
    this.options.writer.close();
  }

  /** A microtask later, so that the lines of one turn go out in one write. */
  private schedule(): void {
    if (this.scheduled || this.inFlight > 0) return;
    this.scheduled = true;
    queueMicrotask(() => {
      this.scheduled = false;
      this.pump();
    });
  }

  private pump(): void {
    if (this.inFlight > 0 || this.batch.length === 0) return;
    const note = this.lost > 0 ? this.droppedNote() : undefined;
    const reported = note === undefined ? 0 : this.lost;
    const text = (note ?? "") + this.batch.join("");
    this.batch = [];
    this.size = 0;
    this.inFlight = text.length;
    this.lost -= reported;
    this.options.writer.write(Buffer.from(text, "utf8"), (error) => {
      this.inFlight = 0;
      if (error !== undefined) this.failed(error, countLines(text) - (note === undefined ? 0 : 1) + reported);
      this.notify();
      this.schedule();
    });
  }

  private failed(error: Error, lines: number): void {
    this.lost += lines;
    const code = errnoOf(error);
    const gone = code === "EPIPE" || code === "ECONNRESET" || code === "EIO" || code === "ERR_STREAM_DESTROYED";
    if (!gone || this.broken) return;
    this.broken = true;
    this.options.onBroken?.();
  }

  private droppedNote(): string | undefined {
    const describe = this.options.describeDropped ?? ((lines) => `... dropped ${lines} lines: the reader was too slow`);
    const text = describe(this.lost);
    return text === undefined ? undefined : `${text}\n`;
  }

  private changed(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      const onAbort = (): void => reject(signal?.reason as Error);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.waiters.push(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
    });
  }

  private notify(): void {
    const waiters = this.waiters;
    this.waiters = [];
    for (const wake of waiters) wake();
  }
}

/**
 * The writer that fits what a descriptor is. Terminals and pipes are opened anew without blocking, so that neither
 * our own thread pool nor the exit of the process waits for a stopped reader, and the description that is shared
 * with the parent keeps its flags; a file keeps its shared offset; a socket (journald) goes through libuv.
 */
export function writerFor(fd: number, clock: Clock): ChunkWriter {
  const stat = fstatSync(fd);
  if (stat.isSocket()) return new StreamWriter(new Socket({ fd, readable: false, writable: true }));
  if (!stat.isFIFO() && !stat.isCharacterDevice()) return new FdWriter(fd, clock);
  try {
    const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_APPEND;
    return new FdWriter(openSync(`/proc/self/fd/${fd}`, flags), clock, true);
  } catch {
    // No /proc, or a terminal of another user: one thread of the pool may then wait for the reader.
    return new FdWriter(fd, clock);
  }
}

/** First wait and longest wait before a full pipe or a stopped terminal is tried again, in milliseconds. */
const RETRY_FIRST_MS = 5;
const RETRY_MAX_MS = 250;

/** Writes to a descriptor; a full one (EAGAIN) is tried again with growing waits until it takes the rest. */
export class FdWriter implements ChunkWriter {
  private retry: Timer | undefined;
  private cut = false;
  private closed = false;

  constructor(
    private readonly fd: number,
    private readonly clock: Clock,
    private readonly owned = false,
  ) {}

  write(chunk: Uint8Array, done: (error: Error | undefined) => void): void {
    // A chunk that broke off in the middle of a line must not glue the next one to it.
    const whole = this.cut ? Buffer.concat([Buffer.from("\n"), chunk]) : chunk;
    this.attempt(whole, RETRY_FIRST_MS, done);
  }

  close(): void {
    this.closed = true;
    this.retry?.cancel();
    if (this.owned) close(this.fd, () => undefined);
  }

  private attempt(chunk: Uint8Array, waitMs: number, done: (error: Error | undefined) => void): void {
    if (this.closed) return done(new Error("closed"));
    write(this.fd, chunk, 0, chunk.length, null, (error, written) => {
      if (error === null) {
        this.cut = written < chunk.length;
        if (this.cut) return this.attempt(chunk.subarray(written), RETRY_FIRST_MS, done);
        return done(undefined);
      }
      if (errnoOf(error) !== "EAGAIN" && errnoOf(error) !== "EINTR") return done(error);
      this.retry = this.clock.after(waitMs, () => {
        this.attempt(chunk, Math.min(RETRY_MAX_MS, waitMs * 2), done);
      });
    });
  }
}

/** Writes to a stream, and keeps an error of the stream from ending the process. */
export class StreamWriter implements ChunkWriter {
  private failure: Error | undefined;

  constructor(private readonly stream: Writable) {
    stream.on("error", (error: Error) => {
      this.failure = error;
    });
  }

  write(chunk: Uint8Array, done: (error: Error | undefined) => void): void {
    // Also on a destroyed stream the callback comes exactly once.
    this.stream.write(chunk, (error) => done(error ?? undefined));
  }

  close(): void {
    this.stream.destroy();
  }

  /** What the stream reported last. */
  get error(): Error | undefined {
    return this.failure;
  }
}

function countLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return Math.max(1, lines);
}
