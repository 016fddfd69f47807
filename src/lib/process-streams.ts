import type { Abortable } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { type ChunkWriter, writerFor } from "./output.ts";
import { DescriptorTerminal } from "./terminal.ts";

/** The process's own input and output as bytes, for a command that is a pipe between the user and something else. */
export class ProcessStreams {
  /** The terminal that the user sees, if it is one. */
  readonly screen = new DescriptorTerminal(1);
  private readonly writers = new Map<1 | 2, ChunkWriter>();

  constructor(private readonly clock: Clock) {}

  /** True when the user types at a terminal. */
  get isTyped(): boolean {
    return new DescriptorTerminal(0).isTerminal;
  }

  /** Keys go through as they are pressed, Ctrl-C too, until the answer is called. */
  raw(): () => void {
    const { stdin } = process;
    if (!stdin.isTTY) return () => undefined;
    stdin.setRawMode(true);
    return () => void stdin.setRawMode(false);
  }

  /** What comes in, until its end or the abort. */
  async *input({ signal }: Abortable): AsyncGenerator<Buffer> {
    const { stdin } = process;
    const stop = (): void => void stdin.destroy();
    signal.addEventListener("abort", stop, { once: true });
    try {
      for await (const chunk of stdin) yield chunk as Buffer; // reason: no encoding is set, so chunks are buffers
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Resolves when the bytes are written; false when the reader has left. */
  write(descriptor: 1 | 2, bytes: Uint8Array): Promise<boolean> {
    let writer = this.writers.get(descriptor);
    if (writer === undefined) {
      writer = writerFor(descriptor, this.clock);
      this.writers.set(descriptor, writer);
    }
    const chosen = writer;
    // A copy: the caller's buffer may be used again before a stopped terminal takes it.
    return new Promise((resolve) => chosen.write(Buffer.from(bytes), (error) => resolve(error === undefined)));
  }
}
