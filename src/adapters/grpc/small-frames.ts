import { StreamDecoder } from "@grpc/grpc-js/build/src/stream-decoder.js";

/** What grpc-js has of a message that it is receiving; its types hide it. */
export interface PartialMessage {
  readonly readState: number;
  readPartialMessage: Buffer[];
}

/** The state between two messages. */
const NO_DATA = 0;
/** Bytes of a frame that is kept as it is. */
const LARGE = 4096;

let isJoining = false;

/**
 * Has grpc-js join small frames of a message that is being received. It keeps each until the message is complete, in a
 * hundred bytes of memory however small it is, so that a message of 4 MiB in frames of one byte takes 400 MiB. It also
 * keeps the frames of the last message until another begins. May be repeated.
 */
export function joinSmallFrames(): void {
  if (isJoining) return;
  isJoining = true;
  const write: (this: StreamDecoder, data: Buffer) => Buffer[] = StreamDecoder.prototype.write;
  StreamDecoder.prototype.write = function (data) {
    const messages = write.call(this, data);
    // Reason for the cast: the fields are private.
    const partial = this as unknown as PartialMessage;
    if (partial.readState === NO_DATA) partial.readPartialMessage = [];
    else joinLast(partial.readPartialMessage);
    return messages;
  };
}

/** Joins the last frame with those before that are not larger: each byte is copied a few times at most. */
function joinLast(frames: Buffer[]): void {
  for (;;) {
    const [before, last] = frames.slice(-2);
    if (before === undefined || last === undefined || last.length >= LARGE || before.length > last.length) return;
    frames.splice(-2, 2, Buffer.concat([before, last]));
  }
}
