import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { CodedError } from "../lib/errors.ts";
import { Wakes } from "../lib/wakes.ts";
import { CriDecoder, type DecodeOptions, HEADER_LIMIT } from "./cri-decoder.ts";
import type { LogFile, LogFiles } from "./files.ts";
import { LogSegments, type OpenSegment } from "./log-segments.ts";
import { tailStart } from "./tail.ts";

/** The log file does not exist. */
export class LogError extends CodedError<"NotFound"> {}

/** Tells a follower when its container writes no more. */
export interface Follow {
  /** True when the container has stopped (or was replaced). */
  ended(): boolean;
  /** Calls back when `ended` may have become true. */
  onChange(fn: () => void, options: Abortable): void;
}

export interface ReadLogRequest extends DecodeOptions {
  readonly path: string;
  /** The last so many lines; all when absent. */
  readonly tail?: number;
  /** Ends after so many bytes of text, in the middle of a line if need be. */
  readonly limitBytes?: number;
  /** Follows what the container writes; missing: stops at the current end. */
  readonly follow?: Follow;
}

/** Poll interval of a follower in milliseconds, because watches may miss changes. */
const LOOK_MS = 1000;
/** A rotated file that has not grown for so long, in milliseconds, is complete. */
const QUIET_MS = 100;
const BLOCK = 256 * 1024;

/**
 * The text of a container's log as it is in the file, both streams, in bounded memory. Each chunk lies in one buffer
 * that is used again: it must be consumed before the next is requested. Leaving the loop frees everything.
 */
export async function* readLog(deps: LogDeps, request: ReadLogRequest, options: Abortable): AsyncGenerator<Buffer> {
  let left = request.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const chunk of readWhole(deps, request, options)) {
    yield chunk.length > left ? chunk.subarray(0, left) : chunk;
    left -= chunk.length;
    if (left <= 0) return;
  }
}

interface LogDeps {
  readonly files: LogFiles;
  readonly clock: Clock;
}

async function* readWhole(deps: LogDeps, request: ReadLogRequest, { signal }: Abortable): AsyncGenerator<Buffer> {
  const scope = new AbortScope([signal]);
  const reader = new LogReader(deps, request);
  const wakes = new Wakes(deps.clock);
  const wake = (): void => wakes.wake();
  try {
    const { follow, path } = request;
    if (follow !== undefined) {
      deps.files.watch(path, wake, scope);
      follow.onChange(wake, scope);
    }
    for (;;) {
      // Asked before reading, so that what was written before the end is still read.
      const isLast = follow === undefined || follow.ended();
      yield* reader.readOn(scope.signal, isLast);
      if (isLast || scope.signal.aborted) break;
      await wakes.sleep(LOOK_MS, scope.signal);
      if (scope.signal.aborted) break;
    }
    yield* reader.end();
  } finally {
    scope.abort();
    scope.dispose();
    await reader.close();
  }
}

/** One log under one name, through rotations. */
class LogReader {
  private readonly segments: LogSegments;
  private segment: OpenSegment | undefined;
  private position = 0;
  /** The rotated file that could not be read, while it is the one to read. */
  private damaged: OpenSegment | undefined;
  private readonly decoder: CriDecoder;
  /** The decoder writes a cut header of the last block before what is read. */
  private readonly block = Buffer.allocUnsafeSlow(HEADER_LIMIT + BLOCK);
  /** Allocated for a log of more than one block. */
  private spare: Buffer | undefined;

  constructor(
    private readonly deps: LogDeps,
    private readonly request: ReadLogRequest,
  ) {
    this.segments = new LogSegments(deps.files, request.path);
    this.decoder = new CriDecoder(request);
  }

  /** Reads everything up to the present end. A missing file is an error only in the last round. */
  async *readOn(signal: AbortSignal, isLast: boolean): AsyncGenerator<Buffer> {
    this.segment ??= await this.openFirst();
    if (this.segment === undefined) {
      if (isLast) throw new LogError("NotFound", `open log ${this.request.path}: no such file`);
      return;
    }
    while (!signal.aborted) {
      // Asked before reading: a rotated file gets no more, but for what is on its way.
      const isRotated = await this.segments.isRotated(this.segment);
      yield* this.drainOrSkip(this.segment, signal);
      if (!isRotated) return;
      const mayGrow = !isLast && this.segment !== this.damaged && (await this.segments.mayGrow(this.segment));
      const next = await this.segments.openAfter(this.segment);
      if (next === undefined) return;
      if (mayGrow && !(await this.isComplete(this.segment.file, next, signal))) {
        const isBegun = (await next.file.size()) > 0;
        await next.file.close();
        if (isBegun) continue;
        return;
      }
      await this.segment.file.close();
      this.segment = next;
      this.position = 0;
    }
  }

  /** Opens the file that holds the first wanted line, and goes to that line. */
  private async openFirst(): Promise<OpenSegment | undefined> {
    let segment = (await this.segments.openCurrent()) ?? (await this.segments.openNewest());
    if (segment === undefined) return undefined;
    const { tail } = this.request;
    let missing = tail;
    let isContinued = false;
    for (;;) {
      if (missing !== undefined) {
        const found = await findTail(segment, missing, isContinued);
        this.position = found.start;
        missing = found.missing;
        // The first line of a file may have begun in the one before: the runtime goes on in the middle of a line.
        if (missing === 0 && (found.start > 0 || tail === 0)) return segment;
      }
      if (!(await this.isBeforeWanted(segment))) return segment;
      const before = await this.segments.openBefore(segment);
      if (before === undefined) return segment;
      isContinued ||= (await segment.file.size()) > 0;
      await segment.file.close();
      segment = before;
    }
  }

  /** True unless the file before this one was written to only before the time that is asked for. */
  private async isBeforeWanted(segment: OpenSegment): Promise<boolean> {
    const { sinceMs } = this.request;
    if (sinceMs === undefined) return true;
    return ((await this.segments.modifiedBefore(segment)) ?? 0) >= sinceMs;
  }

  /**
   * The runtime opens the new file before it has written everything to the old one. A busy machine may leave the old one
   * quiet for long, therefore it also has to have begun the new one.
   */
  private async isComplete(file: LogFile, next: OpenSegment, signal: AbortSignal): Promise<boolean> {
    if ((await next.file.size()) === 0) return false;
    await this.deps.clock.sleep(QUIET_MS, { signal }).catch(() => undefined);
    return (await file.size()) === this.position;
  }

  *end(): Generator<Buffer> {
    const rest = this.decoder.end();
    if (rest.length > 0) yield rest;
  }

  async close(): Promise<void> {
    await this.segment?.file.close();
  }

  /** A rotated file that is damaged does not keep the others from being read. */
  private async *drainOrSkip(segment: OpenSegment, signal: AbortSignal): AsyncGenerator<Buffer> {
    if (segment === this.damaged) return;
    try {
      yield* this.drain(segment.file, signal);
    } catch (error) {
      if (segment.key === undefined) throw error;
      this.damaged = segment;
      yield Buffer.from(`kubelet: rotated log ${segment.name} is damaged\n`);
    }
  }

  /**
   * Up to the size that the file has now, so that a chatty container cannot keep a plain read going. While one block is
   * decoded and sent the next is read.
   */
  private async *drain(file: LogFile, signal: AbortSignal): AsyncGenerator<Buffer> {
    const size = await file.size();
    if (size < this.position) this.position = 0; // emptied in place
    let coming = this.position < size ? this.begin(file, this.block, size) : undefined;
    while (coming !== undefined && !signal.aborted) {
      const { block, read }: Coming = coming;
      const count = await read;
      if (count === 0) return;
      this.position += count;
      this.spare ??= this.position < size ? Buffer.allocUnsafeSlow(HEADER_LIMIT + BLOCK) : undefined;
      const other = block === this.block ? this.spare : this.block;
      coming = this.position < size && other !== undefined ? this.begin(file, other, size) : undefined;
      for (const text of this.decoder.feed(block, HEADER_LIMIT, HEADER_LIMIT + count)) {
        if (text.length > 0) yield text;
      }
    }
  }

  private begin(file: LogFile, block: Buffer, size: number): Coming {
    const wanted = Math.min(BLOCK, size - this.position);
    const read = file.read(block.subarray(HEADER_LIMIT, HEADER_LIMIT + wanted), this.position);
    // Whoever leaves early does not wait for it.
    read.catch(() => undefined);
    return { block, read };
  }
}

/** Where the wanted lines begin; a damaged rotated file has none. */
async function findTail(
  { file, key }: OpenSegment,
  lines: number,
  isContinued: boolean,
): Promise<{ start: number; missing: number }> {
  try {
    await file.hold?.();
    return await tailStart(file, lines, { end: await file.size(), isContinued });
  } catch (error) {
    if (key === undefined) throw error;
    return { start: 0, missing: lines };
  } finally {
    file.release?.();
  }
}

/** A block that is being read. */
interface Coming {
  readonly block: Buffer;
  readonly read: Promise<number>;
}
