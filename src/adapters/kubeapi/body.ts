import { errorOfConnection } from "./api-error.ts";
import { ApiError } from "./port.ts";
import type { WireAnswer } from "./wire.ts";

/** Maximum size of a response: more than any list or object that a node reads. */
const MOST_BODY_BYTES = 256 << 20;
/** An object has at most about 1.5 MB in etcd; JSON may be some times longer. */
const MOST_LINE_BYTES = 32 << 20;

/** Reads the whole body. An interrupted or too large one rejects with `ApiError`, an abort with the signal's reason. */
export function readBody({ body, isCut }: WireAnswer, signal: AbortSignal): Promise<Buffer> {
  // By events: the async iterator of a stream costs more than the rest of a small call.
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isOver = false;
    const fail = (error: unknown): void => {
      isOver = true;
      body.destroy();
      reject(signal.aborted ? (signal.reason as Error) : errorOfConnection(error, "the answer was cut"));
    };
    body.on("error", fail);
    body.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MOST_BODY_BYTES) fail(new ApiError("Garbage", `response exceeds ${MOST_BODY_BYTES} bytes`));
    });
    body.on("end", () => {
      if (signal.aborted || isCut()) return fail(new Error("connection was closed"));
      isOver = true;
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    });
    body.on("close", () => {
      if (!isOver) fail(new Error("connection was closed"));
    });
  });
}

const NEWLINE = 10;

/** Yields the lines of a body. A last line without its newline means that the body was interrupted. */
export async function* readLines(answer: WireAnswer, signal: AbortSignal): AsyncGenerator<string, void> {
  let parts: Buffer[] = [];
  let size = 0;
  let isCut = false;
  try {
    // No encoding is set, so that every chunk is a buffer.
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        const last = chunk.subarray(start, end);
        const line = parts.length === 0 ? last.toString("utf8") : Buffer.concat([...parts, last]).toString("utf8");
        parts = [];
        size = 0;
        start = end + 1;
        if (line.trim() !== "") yield line;
      }
      if (start === chunk.length) continue;
      parts.push(chunk.subarray(start));
      size += chunk.length - start;
      if (size > MOST_LINE_BYTES) throw new ApiError("Garbage", `watch event exceeds ${MOST_LINE_BYTES} bytes`);
    }
    isCut = answer.isCut();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw errorOfConnection(error, "watch was interrupted");
  } finally {
    answer.body.destroy();
  }
  signal.throwIfAborted();
  if (isCut || parts.length > 0) throw new ApiError("Unavailable", "watch was interrupted");
}
