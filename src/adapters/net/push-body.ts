import type { ServerResponse } from "node:http";
import type { PushedBody } from "./http-route.ts";

/** Larger pieces are sent without a copy. */
const MOST_FRAMED = 64 * 1024;

/** Frames pieces for HTTP/1.1, with the last one kept: an event goes to all its readers one after the other. */
export class ChunkFrames {
  private last: { readonly bytes: Uint8Array; readonly frame: Buffer } | undefined;

  frameOf(bytes: Uint8Array): Buffer {
    if (this.last?.bytes === bytes) return this.last.frame;
    const head = Buffer.from(`${bytes.length.toString(16)}\r\n`);
    const frame = Buffer.concat([head, bytes, Buffer.from("\r\n")]);
    this.last = { bytes, frame };
    return frame;
  }
}

export interface PushOptions {
  readonly frames: ChunkFrames;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Called when the client has to read before more is sent. */
  onFull(): void;
  /** Called when it has read. */
  onRoom(): void;
}

/**
 * Sends a pushed body after its head. Resolves at its end, or when the client disconnects; rejects with the error of the
 * body.
 */
export function pushBody(response: ServerResponse, body: PushedBody, options: PushOptions): Promise<void> {
  const { signal, onFull, onRoom } = options;
  return new Promise((resolve, reject) => {
    const { write, drains } = writerOf(response, options.frames);
    const resume = (): void => {
      onRoom();
      source.resume();
    };
    const stop = (): void => {
      source.stop();
      finish(resolve);
    };
    const finish = (settle: () => void): void => {
      signal.removeEventListener("abort", stop);
      drains.off("drain", resume);
      settle();
    };
    drains.on("drain", resume);
    signal.addEventListener("abort", stop, { once: true });
    const source = body.sendTo({
      write: (bytes) => {
        const hasRoom = write(bytes);
        if (!hasRoom) onFull();
        return hasRoom;
      },
      end: () => finish(resolve),
      fail: (error) => finish(() => reject(error)),
    });
  });
}

interface Writer {
  /** False if the client must read before more is written. */
  write(bytes: Uint8Array): boolean;
  /** Who emits `drain` then. */
  readonly drains: NodeJS.EventEmitter;
}

/** Frames go straight to the connection: a chunk by `response.write` costs twice as much, and a copy for each client. */
function writerOf(response: ServerResponse, frames: ChunkFrames): Writer {
  const { socket } = response;
  // Without a socket an earlier answer of the connection is being sent; without chunks the client is of HTTP/1.0.
  if (socket === null || !response.chunkedEncoding)
    return { write: (bytes) => response.write(bytes), drains: response };
  const write = (bytes: Uint8Array): boolean => {
    if (bytes.length <= MOST_FRAMED) return !socket.writable || socket.write(frames.frameOf(bytes));
    response.write(bytes);
    return !socket.writableNeedDrain;
  };
  return { write, drains: socket };
}
