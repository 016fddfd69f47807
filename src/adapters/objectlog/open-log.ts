import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import type { Logger } from "../../lib/log.ts";
import { FileLog, FORMAT, type LogContent } from "./file-log.ts";
import type { LogFile, LogFiles } from "./files.ts";
import { type LoadedObjects, LogError, type LogWrite, type ObjectLog } from "./port.ts";
import { type DecodedRecord, decodeRecord, encodeHeader, findRecord, recordLength, type Sealer } from "./record.ts";
import { AesSealer, KEY_BYTES } from "./sealer.ts";

const LOG_NAME = "objects.log";
const KEY_NAME = "secrets.key";
const READ_BYTES = 1 << 20;
const HEADER_BYTES = encodeHeader({ format: FORMAT, revision: 0 }).length;

export interface OpenLogDeps {
  readonly files: LogFiles;
  readonly log: Logger;
  /** What a rewrite keeps; called only after this call resolved. */
  content(): LogContent;
}

export interface OpenLogOptions {
  /** Must exist; only root may read it. */
  readonly directory: string;
  readonly slackBytes?: number;
}

/**
 * Opens the log of a directory, or makes one, and loads what is in it. What a crash left half written at the end was
 * never acknowledged and is cut off. Rejects with `LogError`, or with what the filesystem reports.
 */
export async function openObjectLog(
  deps: OpenLogDeps,
  { directory, ...options }: OpenLogOptions,
): Promise<LoadedObjects & { readonly log: ObjectLog }> {
  const { files } = deps;
  const path = join(directory, LOG_NAME);
  const sealer = await openSealer(files, join(directory, KEY_NAME));
  await files.remove(`${path}.new`);
  const file = await files.open(path);
  try {
    const length = await file.size();
    const { size, ...loaded } = await load(file, { path, length, sealer });
    if (size < length) {
      deps.log.warn("Cut off an unfinished write at the end of the objects", { path, bytes: length - size });
      await file.truncate(size);
    }
    const end = size === 0 ? await begin(file) : size;
    // Also for a file that was there: nobody knows whether the one who made it came so far.
    await file.sync();
    await files.syncDirectory(dirname(path));
    return { ...loaded, log: new FileLog({ ...deps, sealer }, { ...options, path }, { file, size: end }) };
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

async function begin(file: LogFile): Promise<number> {
  const header = encodeHeader({ format: FORMAT, revision: 0 });
  await file.write(header, 0);
  return header.length;
}

async function openSealer(files: LogFiles, path: string): Promise<Sealer> {
  let secret = await files.readSmall(path);
  if (secret === undefined) {
    secret = randomBytes(KEY_BYTES);
    await files.writeSmall(path, secret);
  }
  if (secret.length === KEY_BYTES) return new AesSealer(secret, path);
  throw new LogError("NoKey", `read ${path}: it has ${secret.length} bytes, and a key has ${KEY_BYTES}`);
}

interface LoadPlace {
  readonly path: string;
  readonly length: number;
  readonly sealer: Sealer;
}

/** Reads records up to the first that is not one. */
async function load(file: LogFile, place: LoadPlace): Promise<LoadedObjects & { readonly size: number }> {
  const objects = new Map<string, LogWrite & { readonly value: string }>();
  let revision = 0;
  let size = 0;
  for await (const record of records(file, place)) {
    if (size === 0) checkHeader(record, place.path);
    revision = Math.max(revision, record.header?.revision ?? 0);
    for (const { value, ...write } of record.writes) {
      revision = Math.max(revision, write.revision);
      if (value === undefined) objects.delete(write.key);
      else objects.set(write.key, { ...write, value });
    }
    size = record.end;
  }
  await checkTail(file, place, size);
  return { objects: [...objects.values()], revision, size };
}

/**
 * Throws if what follows the last good record is more than one unfinished write. Only the last write of a file may be
 * unfinished, so a good record behind a bad one means that what was acknowledged is damaged.
 */
async function checkTail(file: LogFile, { path, length }: LoadPlace, size: number): Promise<void> {
  if (size === 0 && length > HEADER_BYTES) throw notOurs(path);
  const rest = await file.read(size, length - size);
  const behind = findRecord(rest);
  if (behind === undefined) return;
  const message = `read ${path}: it is damaged at byte ${size}, with good records from byte ${size + behind} on`;
  throw new LogError("Corrupt", `${message}; restore it from a backup, or move it away to start empty`);
}

function checkHeader({ header }: DecodedRecord, path: string): void {
  if (header === undefined) throw notOurs(path);
  if (header.format === FORMAT) return;
  const message = `read ${path}: it has format ${header.format}, and this version reads ${FORMAT}; use the newer version`;
  throw new LogError("Corrupt", message);
}

function notOurs(path: string): LogError {
  return new LogError("Corrupt", `read ${path}: it does not begin like a file of objects; move it away to start empty`);
}

async function* records(
  file: LogFile,
  { length, sealer }: LoadPlace,
): AsyncGenerator<DecodedRecord & { readonly end: number }> {
  let buffer: Buffer = Buffer.alloc(0);
  let begin = 0;
  let read = 0;
  for (;;) {
    const wanted = recordLength(buffer) ?? (buffer.length < 8 ? 8 : undefined);
    if (wanted === undefined) return;
    if (wanted <= buffer.length) {
      const record = decodeRecord(buffer.subarray(0, wanted), sealer);
      if (record === undefined) return;
      begin += wanted;
      buffer = buffer.subarray(wanted);
      yield { ...record, end: begin };
      continue;
    }
    if (begin + wanted > length) return;
    const more = await file.read(read, Math.max(READ_BYTES, wanted - buffer.length));
    if (more.length === 0) return;
    read += more.length;
    buffer = Buffer.concat([buffer, more]);
  }
}
