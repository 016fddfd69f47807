import { closeSync, constants, openSync, readSync } from "node:fs";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { untilAborted } from "../../lib/loop.ts";
import { loadNative } from "../../lib/native.ts";

/** Larger than the longest record; the kernel drops one that does not fit. */
const RECORD_BYTES = 16 * 1024;
/** Records read in one turn of the event loop: a flood of messages does not hold it. */
const BATCH = 64;
/** How often the log is read where it cannot be polled, in milliseconds. */
const FALLBACK_MS = 5000;

/** One message of the kernel's log. */
export interface KernelRecord {
  /** Counts the messages since the boot. */
  readonly sequence: number;
  /** Microseconds since the boot. */
  readonly bootMicros: number;
  /** False for messages that processes wrote into the log. */
  readonly isKernel: boolean;
  readonly text: string;
}

/** Callbacks of `followKernelLog`. */
export interface KernelLogHandler {
  record(record: KernelRecord): void;
  /** The kernel overwrote messages before they were read. */
  lost(): void;
}

/**
 * Reads the kernel's log from its oldest message on until the signal aborts. The device is polled by libuv and read
 * without blocking: no thread waits, and an idle log costs nothing. Rejects if it cannot be opened or read.
 */
export async function followKernelLog(
  handler: KernelLogHandler,
  { signal, clock, path = "/dev/kmsg" }: Abortable & { readonly clock: Clock; readonly path?: string },
): Promise<void> {
  const native = await loadNative();
  if (signal.aborted) return;
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const reader = new RecordReader(fd, handler);
    if (native === undefined) return await readAtIntervals(reader, { signal, clock });
    await new Promise<void>((resolve, reject) => {
      const poll = native.koffi.node.poll(fd, { readable: true }, () => {
        try {
          // Called again while there is more.
          reader.readSome();
        } catch (error) {
          poll.close();
          reject(error as Error); // reason: thrown by readSync
        }
      });
      void untilAborted(signal).then(() => {
        poll.close();
        resolve();
      });
    });
  } finally {
    closeSync(fd);
  }
}

async function readAtIntervals(
  reader: RecordReader,
  { signal, clock }: Abortable & { readonly clock: Clock },
): Promise<void> {
  while (!signal.aborted) {
    const isDrained = reader.readSome();
    await clock.sleep(isDrained ? FALLBACK_MS : 0, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

/** Reads whole records: the device returns one for each read. */
class RecordReader {
  private readonly buffer = Buffer.allocUnsafe(RECORD_BYTES);

  constructor(
    private readonly fd: number,
    private readonly handler: KernelLogHandler,
  ) {}

  /** Returns true if nothing is left for now. */
  readSome(): boolean {
    for (let count = 0; count < BATCH; count++) {
      let length = 0;
      try {
        length = readSync(this.fd, this.buffer, 0, RECORD_BYTES, null);
      } catch (error) {
        const code = errnoOf(error);
        if (code === "EAGAIN") return true;
        if (code === "EPIPE") this.handler.lost();
        // EINVAL is a record that does not fit; the next read is behind it.
        else if (code !== "EINTR" && code !== "EINVAL") throw error;
        continue;
      }
      if (length === 0) return true;
      const record = parseKernelRecord(this.buffer.toString("latin1", 0, length));
      if (record !== undefined) this.handler.record(record);
    }
    return false;
  }
}

/** Parses `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,…];TEXT`; lines after the first hold properties of devices. */
export function parseKernelRecord(raw: string): KernelRecord | undefined {
  const match = /^(\d+),(\d+),(\d+),[^;]*;([^\n]*)/.exec(raw);
  if (match === null) return undefined;
  const [, priority = "", sequence = "", bootMicros = "", text = ""] = match;
  // The upper bits are the facility: the kernel never gives its own to a message of a process.
  return { sequence: Number(sequence), bootMicros: Number(bootMicros), isKernel: Number(priority) < 8, text };
}
