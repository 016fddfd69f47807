/** The two outputs of a container. */
export type LogStream = "stdout" | "stderr";

/** What stands before the text of a raw line: `2026-01-02T03:04:05.678901234Z stdout F `. */
export interface CriHeader {
  readonly stream: LogStream;
  /** `P`: the container's line goes on in the next raw line of its stream. */
  readonly isPartial: boolean;
  readonly length: number;
}

/** Longest header that is parsed; a real one has about 50 bytes. */
export const HEADER_LIMIT = 128;
/** Most bytes held back for one stream while a line of the other is open. */
const HELD_LIMIT = 64 * 1024;
const NEWLINE = 10;
const SPACE = 32;
const DASH = 0x2d;
const DOT = 0x2e;
const PLUS = 0x2b;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;
/** Of a time with nanoseconds in UTC. */
const USUAL_TIME = 30;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?((?:Z|[+-]\d\d:\d\d) )$/;
const LINE_END = Buffer.from("\n");

/** True if there is no time between `begin` and `end`, or one with nine digits of a second. */
function isWholeTime(view: Buffer, begin: number, end: number): boolean {
  if (begin === end) return true;
  const zone = view[begin + USUAL_TIME - 1];
  return view[begin + 19] === DOT && (zone === LETTER_Z || zone === PLUS || zone === DASH);
}

/**
 * A copy of the time and the space behind it, with nine digits of a second as Kubernetes shows it: runtimes leave out
 * zeros at the end, and times of several lengths do not sort as text.
 */
function wholeTime(view: Buffer, begin: number, end: number): Buffer {
  const copy = Buffer.from(view.subarray(begin, end));
  if (isWholeTime(view, begin, end)) return copy;
  const [, time, digits = "", zone] = TIME.exec(copy.toString("latin1")) ?? [];
  return time === undefined ? copy : Buffer.from(`${time}.${digits.padEnd(9, "0")}${zone}`);
}

/** The header at the start of `bytes`, or undefined when there is none (or not all of it yet). */
export function readHeader(bytes: Buffer): CriHeader | undefined {
  const first = bytes.indexOf(SPACE);
  const second = first < 1 ? -1 : bytes.indexOf(SPACE, first + 1);
  if (second < 0 || second > HEADER_LIMIT) return undefined;
  const stream = bytes.toString("latin1", first + 1, second);
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  const third = bytes.indexOf(SPACE, second + 1);
  const newline = bytes.indexOf(NEWLINE, second + 1);
  // A runtime may leave the last space out when the line is empty.
  const end = third >= 0 && (newline < 0 || third < newline) ? third : newline;
  if (end < 0 || end > HEADER_LIMIT) return undefined;
  const tag = bytes.toString("latin1", second + 1, end).split(":", 1)[0];
  if (tag !== "P" && tag !== "F") return undefined;
  return { stream, isPartial: tag === "P", length: end === third ? end + 1 : end };
}

/** Which part of a log is read, and how. */
export interface DecodeOptions {
  /** Each line begins with the time at which the runtime got it. */
  readonly timestamps?: boolean;
  /** Only what was written at this wall-clock millisecond or later. */
  readonly sinceMs?: number;
  readonly stream?: LogStream;
}

/** A piece that waits for the open line of the other stream. */
interface HeldPiece {
  readonly stream: LogStream;
  readonly prefix: Buffer;
  readonly bytes: Buffer;
  readonly ends: boolean;
}

const NOTHING = Buffer.alloc(0);

/**
 * Takes the text out of a CRI log, block by block, in bounded memory however long its lines are. Pieces of a partial
 * line are joined; where both streams write at once, the one that came second waits until the open line ends.
 * Lines without a header are shown as they are. It works in the caller's buffer: the text is shorter than the log, so
 * it is moved together in place, and only what has to wait is copied, and a time that becomes longer than its header.
 */
export class CriDecoder {
  /** A header that was cut by the end of a block. */
  private start: Buffer = NOTHING;
  /** In the middle of a raw line: its header is known. */
  private inLine = false;
  private stream: LogStream = "stdout";
  private isPartial = false;
  private isSkipped = false;
  /** End of the timestamp of the header that was read last; the header's own start when it has none. */
  private timeEnd = 0;
  private timeLength = USUAL_TIME;
  /** The stream whose line is not ended yet. */
  private open: LogStream | undefined;
  private held: HeldPiece[] = [];
  private heldSize = 0;
  private isLateEnough = false;

  constructor(private readonly options: DecodeOptions = {}) {}

  /**
   * The text of `buffer` between `from` and `to`, in chunks most of which lie in that buffer: use each before the next is
   * asked for. `from` must be at least `HEADER_LIMIT`; what is before it is overwritten.
   */
  *feed(buffer: Buffer, from: number, to: number): Generator<Buffer> {
    const view = buffer.subarray(0, to);
    const { timestamps = false } = this.options;
    let at = from - this.start.length;
    this.start.copy(buffer, at);
    this.start = NOTHING;
    let first = at;
    let out = at;
    while (at < to) {
      const begin = at;
      if (!this.inLine) {
        at = this.readLineHeader(view, begin);
        if (at < 0) {
          this.start = Buffer.from(view.subarray(begin));
          break;
        }
      }
      const newline = view.indexOf(NEWLINE, at);
      const next = newline < 0 ? to : newline + 1;
      const isFirst = !this.inLine;
      this.inLine = newline < 0;
      const ends = newline >= 0 && !this.isPartial;
      if (this.isSkipped) {
        at = next;
        continue;
      }
      const end = newline < 0 || ends ? next : newline;
      if (this.open !== undefined && this.open !== this.stream) {
        const prefix = timestamps && isFirst ? wholeTime(view, begin, this.timeEnd) : NOTHING;
        this.hold({ stream: this.stream, prefix, bytes: Buffer.from(view.subarray(at, ends ? newline : end)), ends });
        at = next;
        if (this.heldSize <= HELD_LIMIT) continue;
        if (out > first) yield view.subarray(first, out);
        yield this.breakLine();
        first = out = at;
        continue;
      }
      if (timestamps && isFirst && this.open === undefined) {
        if (isWholeTime(view, begin, this.timeEnd)) {
          view.copyWithin(out, begin, this.timeEnd);
          out += this.timeEnd - begin;
        } else {
          const time = wholeTime(view, begin, this.timeEnd);
          if (out + time.length > at) {
            // Longer than what it replaces.
            if (out > first) yield view.subarray(first, out);
            yield time;
            first = out = at;
          } else out += time.copy(view, out);
        }
      }
      view.copyWithin(out, at, end);
      out += end - at;
      at = next;
      this.open = ends ? undefined : this.stream;
      if (!ends || this.held.length === 0) continue;
      yield view.subarray(first, out);
      yield this.release([]);
      first = out = at;
    }
    if (out > first) yield view.subarray(first, out);
  }

  /** What is left when nothing more comes. */
  end(): Buffer {
    const into: Buffer[] = [];
    if (this.start.length > 0 && this.options.stream !== "stderr") {
      this.place({ stream: "stdout", prefix: NOTHING, bytes: this.start, ends: false }, into);
    }
    this.start = NOTHING;
    return Buffer.concat([...into, this.breakLine()]);
  }

  /** Where the text of the line at `begin` starts; -1 when not all of the header is there yet. */
  private readLineHeader(view: Buffer, begin: number): number {
    const { length } = view;
    const limit = Math.min(length, begin + HEADER_LIMIT);
    const space = this.spaceAfterTime(view, begin, limit);
    // ` stdout ` and ` stderr ` differ in two letters; all eight are looked at.
    const isHeader =
      space > begin &&
      space + 9 < limit &&
      view[space] === SPACE &&
      view[space + 1] === 0x73 &&
      view[space + 2] === 0x74 &&
      view[space + 3] === 0x64 &&
      view[space + 7] === SPACE;
    if (isHeader) {
      const isOut = view[space + 4] === 0x6f && view[space + 5] === 0x75 && view[space + 6] === 0x74;
      const isErr = view[space + 4] === 0x65 && view[space + 5] === 0x72 && view[space + 6] === 0x72;
      const tag = view[space + 8];
      if ((isOut || isErr) && (tag === 0x46 || tag === 0x50)) {
        const after = this.afterTag(view, space + 9, limit);
        if (after > 0) {
          this.stream = isOut ? "stdout" : "stderr";
          this.isPartial = tag === 0x50;
          this.timeEnd = space + 1;
          this.timeLength = space - begin;
          this.isSkipped = this.isUnwanted(view, begin, space);
          return after;
        }
      }
    }
    const isWhole = limit === begin + HEADER_LIMIT || view.subarray(begin, limit).includes(NEWLINE);
    if (!isWhole) return -1;
    this.stream = "stdout";
    this.isPartial = false;
    this.timeEnd = begin;
    this.isSkipped = this.options.stream === "stderr";
    return begin;
  }

  /** The first space or newline. A runtime writes all its times in one length, so that is looked at first. */
  private spaceAfterTime(view: Buffer, begin: number, limit: number): number {
    const usual = begin + this.timeLength;
    const isTime = view[begin + 4] === DASH && view[begin + 10] === LETTER_T && view[usual - 1] === LETTER_Z;
    if (isTime && usual < limit && view[usual] === SPACE) return usual;
    let space = begin;
    while (space < limit && view[space] !== SPACE && view[space] !== NEWLINE) space++;
    return space;
  }

  /** Where the text starts behind the tags; 0 when this is no header. A runtime may leave the last space out. */
  private afterTag(view: Buffer, from: number, limit: number): number {
    if (view[from] === SPACE) return from + 1;
    if (view[from] === NEWLINE) return from;
    if (view[from] !== 0x3a) return 0;
    for (let at = from; at < limit; at++) {
      if (view[at] === SPACE) return at + 1;
      if (view[at] === NEWLINE) return at;
    }
    return 0;
  }

  private isUnwanted(view: Buffer, begin: number, space: number): boolean {
    const { stream, sinceMs } = this.options;
    if (stream !== undefined && stream !== this.stream) return true;
    // A log is in order of time: behind the first line that is late enough everything is.
    if (sinceMs === undefined || this.isLateEnough) return false;
    this.isLateEnough = !(Date.parse(view.toString("latin1", begin, space)) < sinceMs);
    return !this.isLateEnough;
  }

  private hold(piece: HeldPiece): void {
    this.held.push(piece);
    this.heldSize += piece.bytes.length + piece.prefix.length + 1;
  }

  private place(piece: HeldPiece, into: Buffer[]): void {
    if (this.open !== undefined && this.open !== piece.stream) {
      this.hold(piece);
      return;
    }
    if (this.open === undefined) into.push(piece.prefix);
    into.push(piece.bytes);
    this.open = piece.ends ? undefined : piece.stream;
    if (!piece.ends) return;
    into.push(LINE_END);
    if (this.held.length > 0) into.push(this.release([]));
  }

  /** Ends the open line early: the other stream must not wait for ever. */
  private breakLine(): Buffer {
    const into = this.held.length > 0 ? [LINE_END] : [];
    this.open = undefined;
    return this.release(into);
  }

  private release(into: Buffer[]): Buffer {
    const waiting = this.held;
    this.held = [];
    this.heldSize = 0;
    for (const piece of waiting) this.place(piece, into);
    return Buffer.concat(into);
  }
}
