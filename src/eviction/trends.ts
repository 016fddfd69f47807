import type { Observations, Signal } from "./signals.ts";

interface Point {
  readonly at: number;
  readonly available: number;
}

/** How far back a trend looks, and how close together its points may be, in milliseconds. */
const WINDOW_MS = 60_000;
const APART_MS = 1000;

/** How fast what is available changes, by signal. */
export class Trends {
  private readonly points = new Map<Signal, Point[]>();

  record(observations: Observations): void {
    for (const [signal, { at, available }] of observations) {
      const known = this.points.get(signal) ?? [];
      const last = known.at(-1);
      if (last !== undefined && at.mono - last.at < APART_MS) continue;
      const kept = known.filter((point) => at.mono - point.at <= WINDOW_MS);
      this.points.set(signal, [...kept, { at: at.mono, available }]);
    }
  }

  /** Change a second over the last minute, negative while it becomes less; undefined until there are two points. */
  perSecond(signal: Signal): number | undefined {
    const points = this.points.get(signal) ?? [];
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined || last.at === first.at) return undefined;
    return ((last.available - first.available) / (last.at - first.at)) * 1000;
  }
}
