import { HEADER_LIMIT, readHeader } from "./cri-decoder.ts";
import type { LogFile } from "./files.ts";

const NEWLINE = 10;

/**
 * Returns where the last `lines` lines before `end` begin, and how many of them the file lacks. A line that the runtime
 * cut into partial ones counts once; with `isContinued` an open one at the end is the beginning of a line that was counted
 * in the next file. Reads backwards in blocks, so a long log costs only its tail.
 */
export async function tailStart(
  file: LogFile,
  lines: number,
  range: { end: number; block?: number; isContinued?: boolean },
): Promise<{ start: number; missing: number }> {
  const { isContinued = false } = range;
  if (lines <= 0 && !isContinued) return { start: range.end, missing: 0 };
  const block = range.block ?? 64 * 1024;
  const counter = new LineCounter(lines, isContinued ? range.end : undefined);
  for (let to = range.end; to > 0; to -= block) {
    const from = Math.max(0, to - block);
    // Some bytes more than the block: a line that starts at its end has its header there.
    const bytes = await readRange(file, from, Math.min(range.end, to + HEADER_LIMIT));
    for (const at of lineStarts(bytes, { first: from === 0, limit: to - from })) {
      if (from + at >= range.end) continue;
      const found = counter.add(from + at, readHeader(bytes.subarray(at))?.isPartial === true);
      if (found !== undefined) return { start: found, missing: 0 };
    }
  }
  return { start: 0, missing: lines - counter.count };
}

/** Takes line starts from the last to the first and answers when enough whole lines lie behind. */
class LineCounter {
  private counted = 0;

  constructor(
    private readonly wanted: number,
    /** Where what was added last begins; undefined at the end of the log. */
    private previous: number | undefined,
  ) {}

  /** Lines counted so far. */
  get count(): number {
    return this.counted;
  }

  add(start: number, isPartial: boolean): number | undefined {
    // The last line of the log ends a line whatever it says, because nothing follows.
    if (!isPartial || this.previous === undefined) {
      if (this.counted === this.wanted) return this.previous;
      this.counted++;
    }
    this.previous = start;
    return undefined;
  }
}

/** Positions after each newline within the first `limit` bytes, last first; 0 too when this is the file's beginning. */
function* lineStarts(bytes: Buffer, { first, limit }: { first: boolean; limit: number }): Generator<number> {
  for (let at = limit; at > 0; ) {
    const newline = bytes.lastIndexOf(NEWLINE, at - 1);
    if (newline < 0) break;
    yield newline + 1;
    at = newline;
  }
  if (first) yield 0;
}

async function readRange(file: LogFile, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(to - from);
  let filled = 0;
  while (filled < buffer.length) {
    const count = await file.read(buffer.subarray(filled), from + filled);
    if (count === 0) break;
    filled += count;
  }
  return buffer.subarray(0, filled);
}
