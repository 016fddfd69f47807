import { displayWidth } from "../lib/table.ts";

const RESET = "\u001b[0m";

/** Cuts a painted line to the columns of a terminal; colours cost no columns and end with the line. Pure. */
export function cutLine(line: string, columns: number): string {
  let left = columns;
  let taken = "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour sequences begin with one
  for (const [part] of line.matchAll(/\u001b\[[0-9;]*m|./gsu)) {
    if (part.length > 1 && part.startsWith("\u001b")) {
      taken += part;
      continue;
    }
    left -= displayWidth(part);
    if (left < 0) return taken.includes("\u001b") ? `${taken}${RESET}` : taken;
    taken += part;
  }
  return taken;
}
