import type { FileHandle } from "node:fs/promises";
import { createGzip, type Gzip } from "node:zlib";
import type { Abortable } from "../../lib/abort.ts";

/** Bytes per read and per call of the compressor, each of which is a trip to the thread pool and back. */
const INPUT_BYTES = 1024 * 1024;
/** Bytes of a piece of compressed output, and per write. */
const OUTPUT_BYTES = 256 * 1024;
/** Fast rather than small: 10 % larger than at 6, the default of Go and so of Kubernetes, in 40 % of the time. */
const LEVEL = 3;

/**
 * The input buffer of the last compression, for the next one, unless the garbage collector was faster. V8 counts buffers
 * as memory of its heap: a fresh one for each read made it collect the whole heap every two seconds, which took more time
 * than the compression.
 */
let spare: WeakRef<Buffer> | undefined;

/** Compresses the rest of `source` into `target`, in the thread pool. After a rejection `target` has a part of it. */
export async function gzipFile(source: FileHandle, target: FileHandle, { signal }: Abortable): Promise<void> {
  const input = spare?.deref() ?? Buffer.allocUnsafeSlow(INPUT_BYTES);
  spare = undefined;
  const gzip = createGzip({ level: LEVEL, chunkSize: OUTPUT_BYTES });
  const packed = new PackedOutput(gzip, target);
  try {
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await source.read(input, 0, INPUT_BYTES);
      if (bytesRead === 0) break;
      await packed.failing((done) => gzip.write(input.subarray(0, bytesRead), done));
      if (packed.bytes >= OUTPUT_BYTES) await packed.write();
    }
    await packed.failing((done) => gzip.once("end", done).end());
    await packed.write();
    spare = new WeakRef(input);
  } finally {
    gzip.destroy();
  }
}

/** What the compressor has returned and the file has not. */
class PackedOutput {
  bytes = 0;
  private pieces: Buffer[] = [];
  private reject: (error: Error) => void = () => undefined;

  constructor(
    gzip: Gzip,
    private readonly target: FileHandle,
  ) {
    gzip.on("error", (error) => this.reject(error));
    gzip.on("data", (piece: Buffer) => {
      this.pieces.push(piece);
      this.bytes += piece.length;
    });
  }

  /** Resolves when `step` calls back; rejects if the compressor fails meanwhile. */
  failing(step: (done: (error?: Error | null) => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.reject = reject;
      step((error) => (error ? reject(error) : resolve()));
    });
  }

  async write(): Promise<void> {
    const { pieces } = this;
    this.pieces = [];
    this.bytes = 0;
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; ) at += (await this.target.write(piece, at)).bytesWritten;
    }
  }
}
