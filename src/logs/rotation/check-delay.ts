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

/** Milliseconds between the closest lines of the grid, and between the widest ones. */
const GRID_MS = 10;
const WIDEST_GRID_MS = 80;

/**
 * Returns the delay up to the line of the grid before its end, so that one wake-up serves the checks of many logs; a short
 * delay as it is. Lines are the farther apart the longer the delay, and it loses at most half of itself. Pure.
 */
export function onGrid(delayMs: number, nowMs: number): number {
  if (delayMs < 2 * GRID_MS) return delayMs;
  let grid = GRID_MS;
  while (grid < WIDEST_GRID_MS && delayMs >= 4 * grid) grid *= 2;
  return delayMs - ((nowMs + delayMs) % grid);
}
