/** Types of records that are answered here. */
export const TYPE = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33, OPT: 41, ANY: 255 } as const;
export const RCODE = { ok: 0, format: 1, server: 2, name: 3, notImplemented: 4, refused: 5, badVersion: 16 } as const;
export const CLASS_IN = 1;
const HEADER_BYTES = 12;
const MAX_NAME_BYTES = 255;
const MAX_JUMPS = 32;
/** Records that are taken of the answer of another server: each is written again, with its name. */
const MAX_ADDRESSES = 100;
/** What fits into a datagram on any path. */
export const OWN_UDP_BYTES = 1232;
export const PLAIN_UDP_BYTES = 512;

/** What a client asks. */
export interface DnsQuery {
  readonly id: number;
  readonly opcode: number;
  readonly isRecursive: boolean;
  /** The name as it was sent, without the last dot. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** Undefined without EDNS0. */
  readonly edns?: { readonly version: number; readonly udpBytes: number };
}

export type RecordData =
  | { readonly type: "A"; readonly ip: string }
  | { readonly type: "CNAME" | "PTR" | "NS"; readonly name: string }
  | { readonly type: "TXT"; readonly text: string }
  | {
      readonly type: "SRV";
      readonly priority: number;
      readonly weight: number;
      readonly port: number;
      readonly name: string;
    }
  | {
      readonly type: "SOA";
      readonly name: string;
      readonly mailbox: string;
      readonly serial: number;
      readonly ttl: number;
    }
  | { readonly type: "raw"; readonly code: number; readonly bytes: Buffer };

export interface DnsRecord {
  readonly name: string;
  readonly ttl: number;
  readonly data: RecordData;
}

export interface DnsAnswer {
  readonly rcode: number;
  readonly isAuthoritative: boolean;
  readonly answers: readonly DnsRecord[];
  readonly authority: readonly DnsRecord[];
  readonly additional: readonly DnsRecord[];
}

/** A message that breaks the format; `id` is there if it was readable. */
export class DnsFormatError extends Error {
  constructor(
    message: string,
    readonly id?: number,
  ) {
    super(message);
    this.name = "DnsFormatError";
  }
}

/** Reads a query. Throws `DnsFormatError`; an answer, or less than a header, has no `id`: nothing is sent back then. */
export function parseQuery(bytes: Buffer): DnsQuery {
  if (bytes.length < HEADER_BYTES) throw new DnsFormatError("shorter than a header");
  const id = bytes.readUInt16BE(0);
  const flags = bytes.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) throw new DnsFormatError("not a query");
  const opcode = (flags >> 11) & 0xf;
  const isRecursive = (flags & 0x0100) !== 0;
  if (opcode !== 0) return { id, opcode, isRecursive, name: "", type: 0, class: 0 };
  if (bytes.readUInt16BE(4) !== 1) throw new DnsFormatError("not one question", id);
  try {
    const reader = { bytes, at: HEADER_BYTES };
    const name = readName(reader);
    const [type, group] = [readNumber(reader, 2), readNumber(reader, 2)];
    const counts = [6, 8, 10].map((at) => bytes.readUInt16BE(at));
    let edns: DnsQuery["edns"];
    for (let left = counts.reduce((sum, one) => sum + one, 0); left > 0; left--) {
      const record = readRecord(reader);
      if (record.type === TYPE.OPT) edns = { version: (record.ttl >>> 16) & 0xff, udpBytes: record.class };
    }
    return { id, opcode, isRecursive, name, type, class: group, ...(edns && { edns }) };
  } catch (error) {
    throw new DnsFormatError(error instanceof Error ? error.message : "unreadable", id);
  }
}

interface Reader {
  readonly bytes: Buffer;
  at: number;
}

function readNumber(reader: Reader, size: number): number {
  if (reader.at + size > reader.bytes.length) throw new DnsFormatError("ends too early");
  const value = reader.bytes.readUIntBE(reader.at, size);
  reader.at += size;
  return value;
}

function readName(reader: Reader): string {
  const labels: string[] = [];
  let at = reader.at;
  let length = 0;
  for (let jumps = 0; ; ) {
    const size = reader.bytes[at];
    if (size === undefined) throw new DnsFormatError("name ends too early");
    if ((size & 0xc0) === 0xc0) {
      const low = reader.bytes[at + 1];
      if (low === undefined || ++jumps > MAX_JUMPS) throw new DnsFormatError("bad pointer in a name");
      if (jumps === 1) reader.at = at + 2;
      at = ((size & 0x3f) << 8) | low;
      continue;
    }
    if (size > 63) throw new DnsFormatError("bad label in a name");
    length += size + 1;
    if (length > MAX_NAME_BYTES) throw new DnsFormatError("name is too long");
    if (size === 0) {
      if (jumps === 0) reader.at = at + 1;
      return labels.join(".");
    }
    if (at + 1 + size > reader.bytes.length) throw new DnsFormatError("label ends too early");
    const label = reader.bytes.toString("latin1", at + 1, at + 1 + size);
    if (label.includes(".")) throw new DnsFormatError("dot in a label");
    labels.push(label);
    at += 1 + size;
  }
}

/**
 * Moves behind a name without reading it. A message has thousands of records, and the pointer of each may lead to a name
 * of a hundred labels.
 */
function skipName(reader: Reader): void {
  for (let length = 0; ; ) {
    const size = reader.bytes[reader.at];
    if (size === undefined) throw new DnsFormatError("name ends too early");
    if ((size & 0xc0) === 0xc0) {
      reader.at += 2;
      return;
    }
    if (size > 63) throw new DnsFormatError("bad label in a name");
    length += size + 1;
    if (length > MAX_NAME_BYTES) throw new DnsFormatError("name is too long");
    reader.at += size + 1;
    if (size === 0) return;
  }
}

function readRecord(reader: Reader) {
  const nameAt = reader.at;
  skipName(reader);
  const [type, group, ttl] = [readNumber(reader, 2), readNumber(reader, 2), readNumber(reader, 4)];
  const size = readNumber(reader, 2);
  const begin = reader.at;
  if (begin + size > reader.bytes.length) throw new DnsFormatError("record ends too early");
  reader.at = begin + size;
  return { nameAt, type, class: group, ttl, begin, size };
}

/** The addresses and other names in the answer of another server. Throws `DnsFormatError`. */
export function parseAddresses(bytes: Buffer): { readonly rcode: number; readonly answers: readonly DnsRecord[] } {
  if (bytes.length < HEADER_BYTES) throw new DnsFormatError("shorter than a header");
  const reader = { bytes, at: HEADER_BYTES };
  for (let left = bytes.readUInt16BE(4); left > 0; left--) {
    skipName(reader);
    readNumber(reader, 4);
  }
  const answers: DnsRecord[] = [];
  for (let left = bytes.readUInt16BE(6); left > 0 && answers.length < MAX_ADDRESSES; left--) {
    const { nameAt, type, ttl, begin, size } = readRecord(reader);
    const isAddress = (type === TYPE.A && size === 4) || (type === TYPE.AAAA && size === 16);
    if (!isAddress && type !== TYPE.CNAME) continue;
    const name = readName({ bytes, at: nameAt });
    const data: RecordData = isAddress
      ? { type: "raw", code: type, bytes: bytes.subarray(begin, begin + size) }
      : { type: "CNAME", name: readName({ bytes, at: begin }) };
    answers.push({ name, ttl, data });
  }
  return { rcode: bytes.readUInt16BE(2) & 0xf, answers };
}

/** A query of our own. */
export function encodeQuery({ id, name, type }: { id: number; name: string; type: number }): Buffer {
  const writer = new Writer();
  for (const word of [id, 0x0100, 1, 0, 0, 0]) writer.word(word);
  writer.name(name, false);
  writer.word(type);
  writer.word(CLASS_IN);
  return writer.bytes;
}

/** The answer to a query within `limit` bytes: what does not fit is left out, and the client told to ask by TCP. */
export function encodeAnswer(query: DnsQuery, answer: DnsAnswer, limit: number): Buffer {
  const whole = encode(query, answer, false);
  if (whole.length <= limit) return whole;
  return encode(query, { ...answer, answers: [], authority: [], additional: [] }, true);
}

/** Bytes that an answer to this query may have over UDP. */
export function udpLimit({ edns }: DnsQuery): number {
  return edns === undefined ? PLAIN_UDP_BYTES : Math.min(Math.max(edns.udpBytes, PLAIN_UDP_BYTES), OWN_UDP_BYTES);
}

function encode(query: DnsQuery, answer: DnsAnswer, isTruncated: boolean): Buffer {
  const { rcode, isAuthoritative, answers, authority, additional } = answer;
  const hasQuestion = query.opcode === 0;
  const flags =
    0x8000 |
    (query.opcode << 11) |
    (isAuthoritative ? 0x0400 : 0) |
    (isTruncated ? 0x0200 : 0) |
    (query.isRecursive ? 0x0100 : 0) |
    0x0080 |
    (rcode & 0xf);
  const writer = new Writer();
  const extra = additional.length + (query.edns === undefined ? 0 : 1);
  for (const word of [query.id, flags, hasQuestion ? 1 : 0, answers.length, authority.length, extra]) writer.word(word);
  if (hasQuestion) {
    writer.name(query.name);
    writer.word(query.type);
    writer.word(query.class);
  }
  for (const record of [...answers, ...authority, ...additional]) writer.record(record);
  if (query.edns !== undefined) writer.options(rcode >> 4);
  return writer.bytes;
}

class Writer {
  private readonly parts: Buffer[] = [];
  private length = 0;
  /** Where a name, or the end of one, was written. */
  private readonly places = new Map<string, number>();

  get bytes(): Buffer {
    return Buffer.concat(this.parts);
  }

  word(value: number): void {
    this.put(Buffer.from([(value >> 8) & 0xff, value & 0xff]));
  }

  name(name: string, compresses = true): void {
    const words = name === "" ? [] : name.split(".");
    for (let at = 0; at < words.length; at++) {
      const rest = words.slice(at).join(".");
      const place = this.places.get(rest);
      if (place !== undefined && compresses) return this.word(0xc000 | place);
      if (this.length < 0x4000) this.places.set(rest, this.length);
      const label = Buffer.from(words[at] ?? "", "latin1");
      this.put(Buffer.from([label.length]));
      this.put(label);
    }
    this.put(Buffer.from([0]));
  }

  record({ name, ttl, data }: DnsRecord): void {
    this.name(name);
    this.word(data.type === "raw" ? data.code : TYPE[data.type]);
    this.word(CLASS_IN);
    this.long(ttl);
    const size = Buffer.alloc(2);
    this.put(size);
    const begin = this.length;
    this.data(data);
    size.writeUInt16BE(this.length - begin);
  }

  options(extendedCode: number): void {
    this.put(Buffer.from([0]));
    this.word(TYPE.OPT);
    this.word(OWN_UDP_BYTES);
    this.long(extendedCode << 24);
    this.word(0);
  }

  private data(data: RecordData): void {
    switch (data.type) {
      case "A":
        return this.put(Buffer.from(data.ip.split(".").map(Number)));
      case "CNAME":
      case "PTR":
      case "NS":
        return this.name(data.name);
      case "TXT":
        this.put(Buffer.from([data.text.length]));
        return this.put(Buffer.from(data.text, "latin1"));
      case "SRV":
        for (const value of [data.priority, data.weight, data.port]) this.word(value);
        // Not every client follows a pointer here.
        return this.name(data.name, false);
      case "SOA":
        this.name(data.name);
        this.name(data.mailbox);
        for (const value of [data.serial, 7200, 1800, 86_400, data.ttl]) this.long(value);
        return undefined;
      case "raw":
        return this.put(data.bytes);
    }
  }

  private long(value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value >>> 0);
    this.put(bytes);
  }

  private put(bytes: Buffer): void {
    this.parts.push(bytes);
    this.length += bytes.length;
  }
}
