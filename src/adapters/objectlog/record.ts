import { crc32 } from "node:zlib";
import type { LogWrite } from "./port.ts";

/** Length and checksum, four bytes each, little-endian. */
const HEAD_BYTES = 8;
/** A record that claims to be longer is none: larger than any batch that the store makes. */
const MOST_PAYLOAD_BYTES = 1 << 30;

/** Operation, revision, lengths of key and value. */
const OPERATION_BYTES = 1 + 8 + 2 + 4;
const OPERATIONS = { header: 0, put: 1, delete: 2, sealed: 3 } as const;

/** Encrypts the values of secrets; the key of the object is authenticated with them. */
export interface Sealer {
  seal(key: string, value: string): Buffer;
  /** Throws `LogError` if the value is not what was sealed for this key. */
  open(key: string, sealed: Buffer): string;
}

/** The first record of a file: `revision` is the newest one that the file stands for. */
export interface LogHeader {
  readonly format: number;
  readonly revision: number;
}

/**
 * One record. A batch is one record, so that it is there as a whole or not at all:
 *
 *   length u32 │ crc32 u32 │ { operation u8, revision f64, key length u16, value length u32, key, value } …
 */
export function encodeBatch(writes: readonly LogWrite[], sealer: Sealer): Buffer {
  return frame(writes.map((write) => encodeWrite(write, sealer)));
}

export function encodeHeader({ format, revision }: LogHeader): Buffer {
  return frame([encodeOperation(OPERATIONS.header, revision, [Buffer.from(String(format)), Buffer.alloc(0)])]);
}

function encodeWrite({ key, revision, value, isSecret }: LogWrite, sealer: Sealer): Buffer {
  const name = Buffer.from(key);
  if (value === undefined) return encodeOperation(OPERATIONS.delete, revision, [name, Buffer.alloc(0)]);
  if (isSecret) return encodeOperation(OPERATIONS.sealed, revision, [name, sealer.seal(key, value)]);
  return encodeOperation(OPERATIONS.put, revision, [name, Buffer.from(value)]);
}

function encodeOperation(operation: number, revision: number, [key, value]: readonly [Buffer, Buffer]): Buffer {
  const head = Buffer.alloc(OPERATION_BYTES);
  head.writeUInt8(operation, 0);
  head.writeDoubleLE(revision, 1);
  head.writeUInt16LE(key.length, 9);
  head.writeUInt32LE(value.length, 11);
  return Buffer.concat([head, key, value]);
}

function frame(parts: readonly Buffer[]): Buffer {
  const record = Buffer.concat([Buffer.alloc(HEAD_BYTES), ...parts]);
  record.writeUInt32LE(record.length - HEAD_BYTES, 0);
  record.writeUInt32LE(crc32(record.subarray(HEAD_BYTES)), 4);
  return record;
}

/** What a record says. */
export interface DecodedRecord {
  readonly header?: LogHeader;
  readonly writes: readonly LogWrite[];
}

/** The bytes that the record at the start of `bytes` takes; undefined if its head is not there or not of a record. */
export function recordLength(bytes: Buffer): number | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const length = bytes.readUInt32LE(0);
  // Zeroes are what a filesystem leaves of blocks that it did not write.
  return length === 0 || length > MOST_PAYLOAD_BYTES ? undefined : HEAD_BYTES + length;
}

/** Where the first whole record behind the start of `bytes` begins; undefined if there is none. Values are text, so that none is inside one. */
export function findRecord(bytes: Buffer): number | undefined {
  for (let at = 1; at + HEAD_BYTES < bytes.length; at++) {
    const length = recordLength(bytes.subarray(at));
    if (length === undefined || at + length > bytes.length) continue;
    if (crc32(bytes.subarray(at + HEAD_BYTES, at + length)) === bytes.readUInt32LE(at + 4)) return at;
  }
  return undefined;
}

/** The record of exactly these bytes; undefined if they are not one. Throws what the sealer throws. */
export function decodeRecord(bytes: Buffer, sealer: Sealer): DecodedRecord | undefined {
  const payload = bytes.subarray(HEAD_BYTES);
  if (recordLength(bytes) !== bytes.length || crc32(payload) !== bytes.readUInt32LE(4)) return undefined;
  const writes: LogWrite[] = [];
  let header: LogHeader | undefined;
  for (let at = 0; at < payload.length; ) {
    const operation = payload.readUInt8(at);
    const revision = payload.readDoubleLE(at + 1);
    const keyEnd = at + OPERATION_BYTES + payload.readUInt16LE(at + 9);
    const end = keyEnd + payload.readUInt32LE(at + 11);
    const key = payload.toString("utf8", at + OPERATION_BYTES, keyEnd);
    const value = payload.subarray(keyEnd, end);
    if (operation === OPERATIONS.header) header = { format: Number(key), revision };
    else if (operation === OPERATIONS.delete) writes.push({ key, revision, value: undefined });
    else if (operation === OPERATIONS.put) writes.push({ key, revision, value: value.toString("utf8") });
    else if (operation === OPERATIONS.sealed) {
      writes.push({ key, revision, value: sealer.open(key, value), isSecret: true });
    } else return undefined;
    at = end;
  }
  return { writes, ...(header && { header }) };
}
