/** Bytes per second that a log may grow by without exceeding its limit by more than the tolerance. */
const EXPECTED_RATE = 24 * 1024 * 1024;
/** Share of the limit by which a log may exceed it between two checks; the rotation itself takes as long again. */
const TOLERANCE = 0.05;
/** A writer may speed up by this factor between two checks. */
const HEADROOM = 1.5;
/** Shortest time between two checks in milliseconds. */
export const SHORTEST_MS = 5;

/** How far a log has grown. */
export interface LogGrowth {
  readonly size: number;
  readonly maxBytes: number;
  /** As measured between the last two checks. */
  readonly bytesPerSecond: number;
}

/**
 * Returns the milliseconds until the size of a growing log has to be checked again: the closer it is to its limit, the
 * sooner, so that even a sudden writer exceeds it by a few per cent only. Pure.
 */
export function nextCheckMs({ size, maxBytes, bytesPerSecond }: LogGrowth, longestMs: number): number {
  const rate = Math.max(EXPECTED_RATE, bytesPerSecond * HEADROOM);
  const room = Math.max(0, maxBytes - size) + maxBytes * TOLERANCE;
  return Math.max(SHORTEST_MS, Math.min(longestMs, (room / rate) * 1000));
}
