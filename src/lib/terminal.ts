import { isatty, WriteStream } from "node:tty";
import type { Abortable } from "./abort.ts";

/** What is known about the terminal on a descriptor, if it is one. */
export class DescriptorTerminal {
  readonly isTerminal: boolean;
  private stream: WriteStream | undefined;

  constructor(private readonly fd: number) {
    this.isTerminal = isatty(fd);
  }

  /** The current size; defaults to 80 × 24. */
  size(): { columns: number; rows: number } {
    if (!this.isTerminal) return { columns: 80, rows: 24 };
    if (this.stream === undefined) {
      this.stream = new WriteStream(this.fd);
      this.stream.on("error", () => undefined);
      this.stream.unref();
    }
    const [columns, rows] = this.stream.getWindowSize();
    return { columns: columns || 80, rows: rows || 24 };
  }

  /** Calls back when the window was resized, until the signal aborts. */
  onResize(fn: () => void, { signal }: Abortable): void {
    if (!this.isTerminal || signal.aborted) return;
    process.on("SIGWINCH", fn);
    signal.addEventListener("abort", () => process.off("SIGWINCH", fn), { once: true });
  }
}
