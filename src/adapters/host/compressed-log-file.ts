import type { FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { createGunzip, type Gunzip, gunzip } from "node:zlib";
import { errnoOf } from "../../lib/errors.ts";

/** Backwards a log up to this size is read from memory; a larger one from its beginning for each step back. */
const WHOLE_BYTES = 32 * 1024 * 1024;
const CHUNK = 256 * 1024;

/** A rotated log that is read decompressed, through the same calls as a plain one. */
export class CompressedLogFile {
  private whole: Buffer | undefined;
  private pass: ForwardPass | undefined;
  private length: number | undefined;

  constructor(
    private readonly handle: FileHandle,
    readonly identity: string,
  ) {}

  /** The size after decompression. */
  async size(): Promise<number> {
    this.length ??= this.whole?.length ?? (await this.count());
    return this.length;
  }

  /** Holds the decompressed text, unless it is too large, until `release`: for reading backwards. */
  async hold(): Promise<void> {
    this.whole ??= await this.decompress();
  }

  /** Frees what is held; a reader may stay for hours. */
  release(): void {
    this.whole = undefined;
  }

  async read(buffer: Buffer, position: number): Promise<number> {
    const { whole } = this;
    if (whole !== undefined) return whole.copy(buffer, 0, position, position + buffer.length);
    if (this.pass === undefined || this.pass.position > position) {
      await this.pass?.close();
      this.pass = new ForwardPass(this.handle);
    }
    return this.pass.read(buffer, position);
  }

  async close(): Promise<void> {
    this.release();
    await this.pass?.close();
    await this.handle.close();
  }

  /** What the last four bytes say: the size modulo 2^32. */
  private async sizeHint(): Promise<number> {
    const { size } = await this.handle.stat();
    const trailer = Buffer.alloc(4);
    if (size < 18) return 0;
    await this.handle.read(trailer, 0, 4, size - 4);
    return trailer.readUInt32LE(0);
  }

  private async count(): Promise<number> {
    const pass = new ForwardPass(this.handle);
    const buffer = Buffer.allocUnsafe(CHUNK);
    try {
      for (let count = await pass.read(buffer, 0); count > 0; ) count = await pass.read(buffer, pass.position);
      return pass.position;
    } finally {
      await pass.close();
    }
  }

  /** The whole text, or undefined if it is too large for that. */
  private async decompress(): Promise<Buffer | undefined> {
    const { size } = await this.handle.stat();
    // Whoever can write to the directory of logs may have chosen what the last bytes say.
    if (size > WHOLE_BYTES || (await this.sizeHint()) > WHOLE_BYTES) return undefined;
    const packed = Buffer.alloc(size);
    let filled = 0;
    for (let count = -1; filled < size && count !== 0; filled += count) {
      count = (await this.handle.read(packed, filled, size - filled, filled)).bytesRead;
    }
    try {
      return await promisify(gunzip)(packed.subarray(0, filled), { maxOutputLength: WHOLE_BYTES });
    } catch (error) {
      // The hint was that of a log above 4 GiB.
      if (errnoOf(error) === "ERR_BUFFER_TOO_LARGE") return undefined;
      throw error;
    }
  }
}

/** One pass of decompression from the beginning; reads only forwards. */
class ForwardPass {
  position = 0;
  private readonly input: Readable;
  private readonly stream: Gunzip;
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer = Buffer.alloc(0);

  constructor(handle: FileHandle) {
    this.stream = createGunzip({ chunkSize: CHUNK });
    // Not a stream of the handle: destroying that would close the handle.
    this.input = Readable.from(chunksOf(handle));
    this.input.on("error", (error) => this.stream.destroy(error));
    this.input.pipe(this.stream);
    // The iterator of a Readable yields `any`; without an encoding chunks are buffers.
    this.chunks = this.stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  async read(buffer: Buffer, position: number): Promise<number> {
    while (this.position + this.rest.length <= position || this.rest.length === 0) {
      this.position += this.rest.length;
      const next = await this.chunks.next();
      if (next.done === true) return 0;
      this.rest = next.value;
    }
    const skipped = position - this.position;
    const count = this.rest.copy(buffer, 0, skipped, skipped + buffer.length);
    this.position += skipped + count;
    this.rest = this.rest.subarray(skipped + count);
    return count;
  }

  async close(): Promise<void> {
    this.input.destroy();
    this.stream.destroy();
    await this.chunks.return?.();
  }
}

async function* chunksOf(handle: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
