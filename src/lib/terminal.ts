import { isatty } from "node:tty";
import type { Abortable } from "./abort.ts";

/** What is known about the terminal on a descriptor, if it is one. */
export class DescriptorTerminal {
  readonly isTerminal: boolean;

  constructor(private readonly fd: 0 | 1 | 2) {
    this.isTerminal = isatty(fd);
  }

  /** The current size; defaults to 80 × 24. */
  size(): { columns: number; rows: number } {
    if (!this.isTerminal) return { columns: 80, rows: 24 };
    const { columns, rows } = this.stream;
    return { columns: columns || 80, rows: rows || 24 };
  }

  /** Calls back when the window was resized, until the signal aborts. */
  onResize(fn: () => void, { signal }: Abortable): void {
    if (!this.isTerminal || signal.aborted) return;
    // The stream hears of it first, so that the callback sees the new size.
    void this.stream;
    process.on("SIGWINCH", fn);
    signal.addEventListener("abort", () => process.off("SIGWINCH", fn), { once: true });
  }

  /** Made at the first use, as that takes a while. Only the process' own streams follow the size of the window. */
  private get stream(): NodeJS.WriteStream {
    return this.fd === 2 ? process.stderr : process.stdout;
  }
}
