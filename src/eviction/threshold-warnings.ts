import type { Logger } from "../lib/log.ts";
import { thresholdAmount } from "../model/eviction-threshold.ts";
import type { Observations, Signal } from "./signals.ts";
import { formatAvailable, formatValue, keyOf, type Threshold } from "./thresholds.ts";

/** A signal may be missing for this long, as while the runtime starts, in milliseconds. */
const MISSING_MS = 60_000;

/** The signals that have a threshold and cannot be measured: it is never met. */
export function unmeasured(thresholds: readonly Threshold[], observations: Observations): readonly Signal[] {
  return [...new Set(thresholds.map(({ signal }) => signal))].filter((signal) => !observations.has(signal));
}

/** Warns, once each, of thresholds that cannot do what they are for: never met, or always. */
export class ThresholdWarnings {
  private readonly missingSince = new Map<Signal, number>();
  private readonly warned = new Set<string>();

  constructor(private readonly log: Pick<Logger, "warn" | "info">) {}

  check(thresholds: readonly Threshold[], observations: Observations, now: number): void {
    this.checkMissing(unmeasured(thresholds, observations), now);
    for (const threshold of thresholds) {
      const { signal, value, minReclaim } = threshold;
      const { capacity } = observations.get(signal) ?? {};
      if (capacity === undefined || this.warned.has(keyOf(threshold))) continue;
      const reclaim = minReclaim === undefined ? 0 : thresholdAmount(minReclaim, capacity);
      if (thresholdAmount(value, capacity) + reclaim <= capacity) continue;
      this.warned.add(keyOf(threshold));
      this.log.warn("Eviction threshold exceeds the capacity, once it is met pods are evicted until none is left", {
        signal,
        threshold: formatValue(value, capacity),
        ...(minReclaim !== undefined && { minimumReclaim: formatValue(minReclaim, capacity) }),
        capacity: formatAvailable(signal, capacity),
      });
    }
  }

  private checkMissing(missing: readonly Signal[], now: number): void {
    for (const signal of [...this.missingSince.keys()].filter((known) => !missing.includes(known))) {
      this.missingSince.delete(signal);
      if (this.warned.delete(signal)) this.log.info("Eviction signal is measured again", { signal });
    }
    for (const signal of missing) {
      const since = this.missingSince.get(signal) ?? now;
      this.missingSince.set(signal, since);
      if (now - since < MISSING_MS || this.warned.has(signal)) continue;
      this.warned.add(signal);
      this.log.warn("Eviction signal cannot be measured, its thresholds are not acted on", { signal });
    }
  }
}
