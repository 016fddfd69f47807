import { styleText } from "node:util";

/** The colours and weights that the commands use, by node's names for them. */
export type CellStyle = "bold" | "dim" | "red" | "green" | "yellow" | "cyan" | "gray";

/** A cell: text, or text with a style that shows only on a terminal. */
export type Cell = string | { readonly text: string; readonly style: CellStyle };

export interface TableOptions {
  readonly header?: readonly string[];
  /** Style the cells and the header; only for a terminal that supports it. */
  readonly color?: boolean;
  /** Spaces between columns; defaults to 3. */
  readonly gap?: number;
}

/** Rows as aligned columns, each line ended by a newline; the last column is not padded. */
export function table(rows: readonly (readonly Cell[])[], options: TableOptions = {}): string {
  const { header, color = false, gap = 3 } = options;
  const head = header?.map((text): Cell => ({ text, style: "bold" }));
  const all = head === undefined ? rows : [head, ...rows];
  const widths: number[] = [];
  for (const row of all) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, displayWidth(textOf(cell)));
    });
  }
  return all.map((row) => `${renderRow(row, widths, { color, gap })}\n`).join("");
}

/** `text` in a style; without colour as it is. */
export function paint(text: string, style: CellStyle, color: boolean): string {
  // `validateStream` must not look at stdout: the caller has decided. Node 20 has no such option and no such check.
  return color ? styleText(style, text, { validateStream: false }) : text;
}

function renderRow(row: readonly Cell[], widths: readonly number[], how: { color: boolean; gap: number }): string {
  const cells = row.map((cell, column) => {
    const text = printable(textOf(cell));
    const shown = typeof cell === "string" ? text : paint(text, cell.style, how.color && text !== "");
    if (column === row.length - 1) return shown;
    return shown + " ".repeat((widths[column] ?? 0) - displayWidth(text) + how.gap);
  });
  return cells.join("").trimEnd();
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}

/** Text from outside must not move the cursor, start a new row or reorder what stands in its row. */
export function printable(text: string): string {
  return text.replace(/[\p{Control}\p{Bidi_Control}\u2028\u2029]/gu, "\ufffd");
}

/** Columns that a text takes on a terminal, near enough: wide East Asian and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of printable(text)) {
    if (/\p{Mark}|\u200d|\ufe0f/u.test(char)) continue;
    width += /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Emoji_Presentation}/u.test(
      char,
    )
      ? 2
      : 1;
  }
  return width;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration in milliseconds for people, two units at most: `640ms`, `5s`, `3m12s`, `2h5m`, `3d4h`. */
export function ago(ms: number): string {
  if (!Number.isFinite(ms)) return "?";
  if (ms < 0) return `-${ago(-ms)}`;
  if (ms < SECOND) return `${Math.round(ms) === 1000 ? 999 : Math.round(ms)}ms`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < HOUR) return twoUnits(ms, [MINUTE, "m"], [SECOND, "s"]);
  if (ms < DAY) return twoUnits(ms, [HOUR, "h"], [MINUTE, "m"]);
  return twoUnits(ms, [DAY, "d"], [HOUR, "h"]);
}

type Unit = readonly [number, string];

function twoUnits(ms: number, large: Unit, small: Unit): string {
  const rest = Math.floor((ms % large[0]) / small[0]);
  return `${Math.floor(ms / large[0])}${large[1]}${rest === 0 ? "" : `${rest}${small[1]}`}`;
}

/** Bytes for people, as quantities are written: `512`, `4.0Ki`, `12Mi`, `1.5Gi`. */
export function bytesWords(bytes: number): string {
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
  let [value, unit] = [bytes, 0];
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)}${units[unit]}`;
}
