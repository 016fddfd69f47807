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
