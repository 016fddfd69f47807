import { messageOf } from "../../lib/errors.ts";
import { RuntimeError } from "../runtime/port.ts";

/** A message of a stream as it was received, not decoded yet. */
export class ReceivedMessage<T> {
  /** Its size. */
  readonly bytes: number;

  constructor(
    private readonly path: string,
    private received: Buffer | undefined,
    private readonly decode: (bytes: Buffer) => T,
  ) {
    this.bytes = received?.length ?? 0;
  }

  /** Decodes it, once: the bytes are released then. Throws a RuntimeError if it cannot be decoded. */
  read(): T {
    const { received } = this;
    this.received = undefined;
    try {
      if (received === undefined) throw new Error("it was read before");
      return this.decode(received);
    } catch (error) {
      throw new RuntimeError("Unknown", `decode message of ${this.path}: ${messageOf(error)}`, { cause: error });
    }
  }
}
