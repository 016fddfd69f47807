interface Reading {
  readonly at: number;
  readonly usageNanos: number;
  readonly rate: number | undefined;
}

/** Samples closer together than this give no new rate: it would say little. */
const SHORTEST_MS = 1000;

/** The mean CPU usage between samples, by key. */
export class CpuRates {
  private readings = new Map<string, Reading>();
  private next = new Map<string, Reading>();

  /** Billionths of a core since the last sample of this key; undefined in the first. `at` is monotonic. */
  rate(key: string, usageNanos: number, at: number): number | undefined {
    const before = this.next.get(key) ?? this.readings.get(key);
    const reading = advance(before, usageNanos, at);
    this.next.set(key, reading);
    return reading.rate;
  }

  /** Evicts the keys that were not sampled since the last call. */
  endRound(): void {
    this.readings = this.next;
    this.next = new Map();
  }
}

function advance(before: Reading | undefined, usageNanos: number, at: number): Reading {
  // A counter that went back belongs to another cgroup of the same name.
  if (before === undefined || usageNanos < before.usageNanos) return { at, usageNanos, rate: undefined };
  const elapsedMs = at - before.at;
  if (elapsedMs < SHORTEST_MS) return before;
  return { at, usageNanos, rate: Math.round(((usageNanos - before.usageNanos) / elapsedMs) * 1000) };
}
