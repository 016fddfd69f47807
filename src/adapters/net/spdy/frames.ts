/** SPDY/3.1 frames, as far as exec and port-forward use them. */
export type Frame =
  | { readonly kind: "data"; readonly stream: number; readonly isLast: boolean; readonly bytes: Buffer }
  | { readonly kind: "reply"; readonly stream: number; readonly isLast: boolean }
  | { readonly kind: "reset"; readonly stream: number; readonly status: number }
  | { readonly kind: "ping"; readonly id: number }
  | { readonly kind: "goAway" }
  /** Settings, windows, headers: nothing that we act on. */
  | { readonly kind: "other" };

const CONTROL = 0x8003;
const TYPE = { synStream: 1, synReply: 2, reset: 3, ping: 6, goAway: 7 } as const;
const FIN = 1;
/** RST_STREAM status CANCEL. */
const CANCEL = 5;
const HEAD = 8;
/** The longest frame in bytes; a peer that announces more does not speak SPDY. */
const LONGEST_FRAME = 1024 * 1024;

/**
 * Headers are one zlib stream for the whole connection, primed with a dictionary that everybody knows. We do not
 * compress: the stream begins with its header, which names the dictionary, and goes on in stored blocks.
 */
const ZLIB_HEADER = Buffer.from("78bbe3c6a7c2", "hex");

/** An empty stored block: what came before it is whole. Go's reader gives nothing out until it has seen one. */
const FLUSH = Buffer.from("000000ffff", "hex");

/** Writes the frames of one connection; the first stream opens its compressed headers. */
export class FrameWriter {
  private isFirst = true;

  /** Opens a stream. Names of headers must be in lower case. */
  synStream(stream: number, headers: Readonly<Record<string, string>>): Buffer {
    const block = storedBlock(headerBlock(headers));
    const compressed = this.isFirst ? Buffer.concat([ZLIB_HEADER, block]) : block;
    this.isFirst = false;
    const body = Buffer.alloc(10);
    body.writeUInt32BE(stream, 0);
    return control(TYPE.synStream, Buffer.concat([body, compressed]));
  }

  reset(stream: number): Buffer {
    const body = Buffer.alloc(8);
    body.writeUInt32BE(stream, 0);
    body.writeUInt32BE(CANCEL, 4);
    return control(TYPE.reset, body);
  }

  ping(id: number): Buffer {
    const body = Buffer.alloc(4);
    body.writeUInt32BE(id, 0);
    return control(TYPE.ping, body);
  }

  /** The head of a data frame; its bytes follow. */
  dataHead(stream: number, length: number, isLast: boolean): Buffer {
    const head = Buffer.alloc(HEAD);
    head.writeUInt32BE(stream, 0);
    head.writeUInt32BE(length, 4);
    head[4] = isLast ? FIN : 0;
    return head;
  }
}

/** Splits a stream of bytes into frames. Throws if it is not SPDY. */
export class FrameReader {
  private rest: Buffer = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<Frame> {
    let bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    for (;;) {
      if (bytes.length < HEAD) break;
      const length = bytes.readUIntBE(5, 3);
      if (length > LONGEST_FRAME) throw new Error("decode SPDY frame: the frame is too long");
      if (bytes.length < HEAD + length) break;
      yield decode(bytes, bytes.subarray(HEAD, HEAD + length));
      bytes = bytes.subarray(HEAD + length);
    }
    this.rest = bytes;
  }
}

function decode(head: Buffer, body: Buffer): Frame {
  const isLast = ((head[4] ?? 0) & FIN) !== 0;
  const first = head.readUInt32BE(0);
  if (first < 0x8000_0000) return { kind: "data", stream: first, isLast, bytes: body };
  if (head.readUInt16BE(0) !== CONTROL) throw new Error("decode SPDY frame: not SPDY/3");
  const number = body.length >= 4 ? body.readUInt32BE(0) & 0x7fff_ffff : 0;
  switch (head.readUInt16BE(2)) {
    case TYPE.synReply:
      return { kind: "reply", stream: number, isLast };
    case TYPE.reset:
      return { kind: "reset", stream: number, status: body.length >= 8 ? body.readUInt32BE(4) : 0 };
    case TYPE.ping:
      return { kind: "ping", id: body.length >= 4 ? body.readUInt32BE(0) : 0 };
    case TYPE.goAway:
      return { kind: "goAway" };
    default:
      return { kind: "other" };
  }
}

function control(type: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt16BE(CONTROL, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(headers);
  const parts: Buffer[] = [uint32(entries.length)];
  for (const text of entries.flat()) parts.push(uint32(Buffer.byteLength(text)), Buffer.from(text));
  return Buffer.concat(parts);
}

/** Deflate's form of bytes as they are; a few headers are far below its 65,535. */
function storedBlock(bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt16LE(bytes.length, 1);
  head.writeUInt16LE(~bytes.length & 0xffff, 3);
  return Buffer.concat([head, bytes, FLUSH]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}
