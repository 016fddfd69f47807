import { execFileSync } from "node:child_process";
import { Program } from "./program.ts";
import { until } from "./until.ts";

export interface PtySize {
  readonly columns: number;
  readonly rows: number;
}

/** A program on a terminal of its own, by `script` of util-linux, and what its screen shows. */
export class PtyProgram {
  private readonly program: Program;
  private size: PtySize;

  constructor(command: string, size: PtySize) {
    this.size = size;
    const setUp = `tty; stty cols ${size.columns} rows ${size.rows}; exec ${command}`;
    this.program = new Program(["script", "-qefc", setUp, "/dev/null"], { stdio: ["pipe", "pipe", "pipe"] });
  }

  /** What the terminal shows now, from its first line to its last one that is not empty. */
  screen(): readonly string[] {
    return screenOf(this.program.stdout.replace(/^\S+\r?\n/, ""), this.size);
  }

  /** The lines of the last picture that replaced another one, as they were written, without colours. */
  lastFrame(): readonly string[] {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the sequences
    const [, ...frames] = this.program.stdout.split(/\x1b\[\d+A\r/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the sequences
    const lines = (frames.at(-1) ?? "").replaceAll(/\x1b\[[\d;?]*[A-Za-z]|\r/g, "").split("\n");
    return lines.slice(0, -1);
  }

  /** All that was written to the terminal. */
  get written(): string {
    return this.program.stdout;
  }

  type(text: string): void {
    this.program.child.stdin?.write(text);
  }

  /** Resizes the terminal, as a window does. */
  async resize(size: PtySize): Promise<void> {
    const terminal = await until("the name of the terminal", () => /^(\/dev\/pts\/\d+)/.exec(this.program.stdout)?.[1]);
    execFileSync("stty", ["-F", terminal, "cols", String(size.columns), "rows", String(size.rows)]);
    this.size = size;
  }

  /** Resolves to the exit code. */
  async ended(): Promise<number | null> {
    return (await this.program.ended).code;
  }

  async kill(): Promise<void> {
    await this.program.end("SIGKILL");
  }
}

/**
 * The lines of a terminal of this size after a text with the sequences that the commands use: colours, moves up, erasing
 * to the end of a line or of the screen. Lines that are too long are wrapped, and what is above the top is gone.
 */
export function screenOf(text: string, { columns, rows }: PtySize): readonly string[] {
  const lines: string[][] = [[]];
  let [row, column] = [0, 0];
  const put = (character: string): void => {
    if (column >= columns) [row, column] = [row + 1, 0];
    while (lines.length <= row) lines.push([]);
    const line = lines[row] ?? [];
    while (line.length < column) line.push(" ");
    line[column++] = character;
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the sequences
  for (const [token, count = "", command] of text.matchAll(/\x1b\[([\d;?]*)([A-Za-z])|[^]/gu)) {
    const top = Math.max(0, lines.length - rows);
    if (token === "\n") {
      row++;
      if (row >= lines.length) lines.push([]);
    } else if (token === "\r") column = 0;
    else if (command === "A") row = Math.max(top, row - Number(count || 1));
    else if (command === "K") lines[row]?.splice(column);
    else if (command === "J") {
      lines[row]?.splice(column);
      lines.splice(row + 1);
    } else if (command === undefined && token !== "\x1b") put(token);
  }
  const shown = lines.slice(Math.max(0, lines.length - rows)).map((line) => line.join("").trimEnd());
  while (shown.at(-1) === "") shown.pop();
  return shown;
}
