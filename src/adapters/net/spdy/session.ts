import type { Duplex } from "node:stream";
import { CodedError, messageOf } from "../../../lib/errors.ts";
import { type Frame, FrameReader, FrameWriter } from "./frames.ts";

/** The connection was lost, or the peer does not speak SPDY. */
export class SpdyError extends CodedError<"Lost" | "Reset"> {}

/** The callbacks of a stream. */
export interface StreamListener {
  /** More bytes. While the promise is open nothing more is read from the whole connection. */
  data?(bytes: Buffer): Promise<void> | void;
  /** Nothing more comes; with an error when the stream did not end by itself. */
  end?(error?: SpdyError): void;
}

/** One stream of a session. */
export interface SpdyStream {
  /** Resolves when the bytes are on their way: the one who waits is the one who is slowed down. */
  write(bytes: Uint8Array): Promise<void>;
  /** Nothing more will be written. */
  end(): void;
  /** Resets the stream. */
  reset(): void;
}

/** Data goes out in frames of at most this many bytes, so that streams take turns. */
const LARGEST_DATA = 32 * 1024;

/** The client's side of a SPDY/3.1 connection that was made by an upgrade. */
export class SpdySession {
  private readonly writer = new FrameWriter();
  private readonly reader = new FrameReader();
  private readonly streams = new Map<number, StreamListener>();
  private next = 1;

  constructor(
    private readonly socket: Duplex,
    private readonly head: Buffer,
  ) {
    socket.on("error", () => undefined);
  }

  /** Opens a stream with these headers, names in lower case. */
  open(headers: Readonly<Record<string, string>>, listener: StreamListener = {}): SpdyStream {
    const id = this.next;
    this.next += 2;
    this.streams.set(id, listener);
    this.socket.write(this.writer.synStream(id, headers));
    return {
      write: (bytes) => this.write(id, bytes),
      end: () => void this.socket.write(this.writer.dataHead(id, 0, true)),
      reset: () => {
        if (this.streams.delete(id)) this.socket.write(this.writer.reset(id));
      },
    };
  }

  /** Reads until the connection ends. Streams that are open then end with an error; their owners know what it means. */
  async run(): Promise<void> {
    let failure: unknown;
    try {
      await this.take(this.head);
      for await (const chunk of this.socket) await this.take(chunk as Buffer); // reason: no encoding is set
    } catch (error) {
      failure = error;
    }
    this.socket.destroy();
    const words = failure === undefined ? "the connection ended" : `the connection broke: ${messageOf(failure)}`;
    for (const { end } of this.streams.values()) end?.(new SpdyError("Lost", words, { cause: failure }));
    this.streams.clear();
  }

  /** Ends the connection with all its streams. */
  close(): void {
    this.socket.destroy();
  }

  private async take(chunk: Buffer): Promise<void> {
    for (const frame of this.reader.read(chunk)) await this.handle(frame);
  }

  private async handle(frame: Frame): Promise<void> {
    switch (frame.kind) {
      case "data":
        if (frame.bytes.length > 0) await this.streams.get(frame.stream)?.data?.(frame.bytes);
        if (frame.isLast) this.ended(frame.stream);
        return;
      case "reply":
        if (frame.isLast) this.ended(frame.stream);
        return;
      case "reset":
        this.ended(frame.stream, new SpdyError("Reset", `the stream was reset (${frame.status})`));
        return;
      case "ping":
        // Even numbers are theirs; ours come back and need no answer.
        if (frame.id % 2 === 0) this.socket.write(this.writer.ping(frame.id));
        return;
      case "goAway":
      case "other":
        return;
    }
  }

  private ended(id: number, error?: SpdyError): void {
    const listener = this.streams.get(id);
    this.streams.delete(id);
    listener?.end?.(error);
  }

  private async write(id: number, bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += LARGEST_DATA) {
      const part = bytes.subarray(at, at + LARGEST_DATA);
      this.socket.write(this.writer.dataHead(id, part.length, false));
      await new Promise<void>((resolve) => {
        // Also on a broken socket the callback comes: `run` tells what happened.
        this.socket.write(part, () => resolve());
      });
    }
  }
}
