/** The two outputs of a container. */
export type LogStream = "stdout" | "stderr";

/** What stands before the text of a raw line: `2026-01-02T03:04:05.678901234Z stdout F `. */
export interface CriHeader {
  readonly stream: LogStream;
  /** `P`: the container's line goes on in the next raw line of its stream. */
  readonly isPartial: boolean;
  readonly length: number;
}

/** Longest header that is looked at; a real one has about 50 bytes. */
export const HEADER_LIMIT = 128;
/** Most bytes held back for one stream while a line of the other is open. */
const HELD_LIMIT = 64 * 1024;
const NEWLINE = 10;
const SPACE = 32;
const LINE_END = Buffer.from("\n");

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

/**
 * Takes the text out of a CRI log, block by block, in bounded memory however long its lines are. Pieces of a partial
 * line are joined; where both streams write at once, the one that came second waits until the open line ends.
 * Lines without a header are shown as they are.
 */
export class CriDecoder {
  private start = Buffer.alloc(0);
  private line: CriHeader | undefined;
  private open: LogStream | undefined;
  private held: { stream: LogStream; bytes: Buffer; ends: boolean }[] = [];
  private heldSize = 0;
  private out: Buffer[] = [];

  /** The text of the next block; the result does not share memory with it. */
  feed(block: Buffer): Buffer {
    let rest = block;
    while (rest.length > 0) {
      const line = this.line ?? this.beginLine(rest);
      if (line === undefined) break;
      if (this.line === undefined) {
        rest = this.takeHeader(line, rest);
        continue;
      }
      const end = rest.indexOf(NEWLINE);
      if (end < 0) {
        this.show(line.stream, rest, false);
        break;
      }
      this.show(line.stream, rest.subarray(0, end), !line.isPartial);
      this.line = undefined;
      rest = rest.subarray(end + 1);
    }
    return this.take();
  }

  /** What is left when nothing more comes. */
  end(): Buffer {
    if (this.start.length > 0) this.show("stdout", this.start, false);
    this.start = Buffer.alloc(0);
    this.breakLine();
    return this.take();
  }

  /** Collects a header that is cut by the end of a block; undefined means it needs more bytes. */
  private beginLine(rest: Buffer): CriHeader | undefined {
    const wanted = HEADER_LIMIT - this.start.length;
    const seen = this.start.length === 0 ? rest : Buffer.concat([this.start, rest.subarray(0, wanted)]);
    const header = readHeader(seen);
    if (header !== undefined) return header;
    const newline = seen.indexOf(NEWLINE);
    if (newline >= 0 || seen.length >= HEADER_LIMIT) return { stream: "stdout", isPartial: false, length: 0 };
    this.start = Buffer.from(seen);
    return undefined;
  }

  private takeHeader(line: CriHeader, rest: Buffer): Buffer {
    const kept = this.start;
    this.start = Buffer.alloc(0);
    this.line = line;
    if (line.length >= kept.length) return rest.subarray(line.length - kept.length);
    // No header after all: what was kept from the last block is text.
    this.show(line.stream, kept.subarray(line.length), false);
    return rest;
  }

  private show(stream: LogStream, bytes: Buffer, ends: boolean): void {
    if (this.open !== undefined && this.open !== stream) {
      this.held.push({ stream, bytes: Buffer.from(bytes), ends });
      this.heldSize += bytes.length + 1;
      if (this.heldSize > HELD_LIMIT) this.breakLine();
      return;
    }
    if (bytes.length > 0) this.out.push(bytes);
    if (!ends) {
      this.open = stream;
      return;
    }
    this.out.push(LINE_END);
    this.open = undefined;
    this.release();
  }

  /** Ends the open line before its time: the other stream cannot wait for ever. */
  private breakLine(): void {
    if (this.held.length > 0) this.out.push(LINE_END);
    this.open = undefined;
    this.release();
  }

  private release(): void {
    const waiting = this.held;
    this.held = [];
    this.heldSize = 0;
    for (const piece of waiting) this.show(piece.stream, piece.bytes, piece.ends);
  }

  private take(): Buffer {
    const text = Buffer.concat(this.out);
    this.out = [];
    return text;
  }
}
