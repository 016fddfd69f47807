/** A line of the benchmark's table. */
export interface Row {
  readonly what: string;
  readonly measured: number;
  readonly raw?: number;
  readonly limit: number;
  readonly unit: string;
}

/** The middle one; of an even number, the greater of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Prints a table and JSON; the exit code is 1 if a limit was exceeded. */
export function show(rows: readonly Row[]): void {
  const cells = rows.map(({ what, measured, raw, limit, unit }) => [
    what,
    `${measured.toFixed(1)} ${unit}`,
    raw === undefined ? "" : `${raw.toFixed(1)} ${unit}`,
    `${limit.toFixed(1)} ${unit}`,
    measured <= limit ? "yes" : "NO",
  ]);
  const all = [["what", "measured", "raw CRI", "limit", "within"], ...cells];
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  process.stdout.write(`${lines.join("\n")}\n\n${JSON.stringify({ node: process.version, rows })}\n`);
  if (rows.some(({ measured, limit }) => !(measured <= limit))) process.exitCode = 1;
}
