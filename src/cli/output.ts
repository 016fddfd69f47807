import type { Abortable } from "../lib/abort.ts";
import type { LineSink } from "../lib/output.ts";

/** The output of a command. Never blocks the process, whatever the reader does. */
export interface Output {
  readonly isTerminal: boolean;
  readonly color: boolean;
  /** True if the reader has closed the output. */
  isBroken(): boolean;
  size(): { readonly columns: number; readonly rows: number };
  onResize(fn: () => void, options: Abortable): void;
  /** Waits for room and never drops. False if the reader has closed the output: the command should end quietly. */
  send(text: string, options: Abortable): Promise<boolean>;
  /** For frames that are soon replaced: may be dropped if the reader is slow. */
  write(text: string): void;
  /** Resolves when everything is written, however long the reader is stopped. */
  drained(): Promise<void>;
}

/** What is known about a descriptor. */
export interface Terminal {
  readonly isTerminal: boolean;
  size(): { readonly columns: number; readonly rows: number };
  /** Calls back when the size changed, until the signal aborts. */
  onResize(fn: () => void, options: Abortable): void;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** An `Output` on a sink. */
export function outputOn(
  sink: LineSink,
  terminal: Terminal,
  env: Readonly<Record<string, string | undefined>>,
): Output {
  return {
    isTerminal: terminal.isTerminal,
    color: wantsColor(terminal.isTerminal, env),
    isBroken: () => sink.isBroken,
    size: () => terminal.size(),
    onResize: (fn, options) => terminal.onResize(fn, options),
    send: (text, options) => sink.send(text, options),
    write: (text) => sink.write(text),
    async drained() {
      while (!(await sink.flush({ timeoutMs: DAY_MS })) && !sink.isBroken);
    },
  };
}

/** Colours only on a terminal, and not where the user does not want them (NO_COLOR) or it cannot show them. */
export function wantsColor(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  return isTerminal && env["TERM"] !== "dumb";
}
