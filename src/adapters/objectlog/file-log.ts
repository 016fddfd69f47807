import { dirname } from "node:path";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { LogFile, LogFiles } from "./files.ts";
import { LogError, type LogWrite, type ObjectLog } from "./port.ts";
import { encodeBatch, encodeHeader, type Sealer } from "./record.ts";

export const FORMAT = 1;
/** A file is rewritten when it is twice as long as its objects, and this much longer at least. */
const SLACK_BYTES = 4 << 20;
/** Objects are rewritten in batches of about this size. */
const BATCH_BYTES = 1 << 20;

/** All that is to be kept, for a rewrite: what was appended and acknowledged, and nothing else. */
export interface LogContent {
  readonly revision: number;
  readonly objects: Iterable<LogWrite>;
}

export interface FileLogDeps {
  readonly files: LogFiles;
  readonly sealer: Sealer;
  readonly log: Logger;
  content(): LogContent;
}

export interface FileLogOptions {
  readonly path: string;
  readonly slackBytes?: number;
}

/**
 * An append-only file of records.
 *
 *   good ──write fails──► tail ──truncate──► good         (nothing behind `size` was acknowledged)
 *   good ──sync fails───► doubtful ──rewrite──► good       (the kernel may have dropped what it could not write)
 *
 * What is found broken is repaired by the next append, which fails as long as that does.
 */
export class FileLog implements ObjectLog {
  private state: "good" | "tail" | "doubtful" | "closed" = "good";
  /** Bytes of the objects at the last rewrite. */
  private liveBytes: number;

  constructor(
    private readonly deps: FileLogDeps,
    private readonly options: FileLogOptions,
    private open: { file: LogFile; size: number },
  ) {
    this.liveBytes = open.size;
  }

  async append(writes: readonly LogWrite[]): Promise<void> {
    if (this.state === "closed") throw new LogError("Closed", `append to ${this.options.path}: it was closed`);
    await this.repair();
    const bytes = encodeBatch(writes, this.deps.sealer);
    const { file, size } = this.open;
    await this.guarded("tail", () => file.write(bytes, size));
    await this.guarded("doubtful", () => file.sync());
    this.open.size = size + bytes.length;
  }

  async close(): Promise<void> {
    if (this.state === "closed") return;
    this.state = "closed";
    await this.open.file.close();
  }

  private async repair(): Promise<void> {
    if (this.state === "doubtful") {
      await this.rewrite();
      this.deps.log.info("Rewrote the file of the objects after a failed sync", { path: this.options.path });
    } else if (this.state === "tail") {
      const { file, size } = this.open;
      await this.guarded("tail", () => file.truncate(size));
      await this.guarded("doubtful", () => file.sync());
      this.state = "good";
    } else if (this.open.size > 2 * this.liveBytes + (this.options.slackBytes ?? SLACK_BYTES)) {
      await this.compact();
    }
  }

  /** A file that could not be compacted is still a good one; the next attempt comes after it has grown again. */
  private async compact(): Promise<void> {
    try {
      await this.rewrite();
    } catch (error) {
      if (this.state === "doubtful") throw error;
      this.deps.log.warn("Failed to compact the file of the objects", { error: messageOf(error) });
      this.liveBytes = this.open.size;
    }
  }

  /** Writes all objects to another file that replaces this one. */
  private async rewrite(): Promise<void> {
    const { files } = this.deps;
    const { path } = this.options;
    const fresh = `${path}.new`;
    let made: { file: LogFile; size: number } | undefined;
    try {
      made = await this.writeAll(fresh);
      await files.rename(fresh, path);
    } catch (error) {
      await made?.file.close().catch(() => undefined);
      await files.remove(fresh).catch(() => undefined);
      throw this.failure(error);
    }
    await this.open.file.close().catch(() => undefined);
    this.open = made;
    this.liveBytes = made.size;
    // Until the directory is synced a power cut may bring back the old file, without what is appended to this one.
    await this.guarded("doubtful", () => files.syncDirectory(dirname(path)));
    this.state = "good";
  }

  private async writeAll(path: string): Promise<{ file: LogFile; size: number }> {
    const { files, sealer } = this.deps;
    const { revision, objects } = this.deps.content();
    await files.remove(path);
    const file = await files.open(path);
    try {
      let size = 0;
      const add = async (bytes: Buffer): Promise<void> => {
        await file.write(bytes, size);
        size += bytes.length;
      };
      await add(encodeHeader({ format: FORMAT, revision }));
      for (const batch of batches(objects)) await add(encodeBatch(batch, sealer));
      await file.sync();
      return { file, size };
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
  }

  /** Runs a step; if it fails the log is in that state. */
  private async guarded(state: "tail" | "doubtful", step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      this.state = state;
      throw this.failure(error);
    }
  }

  private failure(error: unknown): LogError {
    if (error instanceof LogError) return error;
    const errno = errnoOf(error);
    const code = errno === "ENOSPC" || errno === "EDQUOT" ? "NoSpace" : "Failed";
    return new LogError(code, `write ${this.options.path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Objects in groups of about a megabyte. */
function* batches(objects: Iterable<LogWrite>): Generator<LogWrite[]> {
  let batch: LogWrite[] = [];
  let size = 0;
  for (const object of objects) {
    batch.push(object);
    size += object.value?.length ?? 0;
    if (size < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}
