import type { Clock } from "../../lib/clock.ts";
import { operationOf } from "./call-metrics.ts";

/** Calls that last as long as somebody else wants: an image, a grace period, a command. */
const UNBOUNDED = new Set(["pull_image", "stop_container", "exec_sync"]);

/** The calls to the runtime that have not ended: one that is stuck shows here with its name and age. */
export class CallsInFlight {
  private readonly calls = new Set<{ readonly name: string; readonly since: number }>();
  private lastEnd: number;

  constructor(private readonly clock: Clock) {
    this.lastEnd = clock.now().mono;
  }

  /** Monotonic time at which a call last ended, well or not. */
  get endedAt(): number {
    return this.lastEnd;
  }

  /** A call begins; returns what to call at its end. */
  begin(path: string): () => void {
    const call = { name: operationOf(path) ?? path, since: this.clock.now().mono };
    this.calls.add(call);
    return () => {
      this.calls.delete(call);
      this.lastEnd = this.clock.now().mono;
    };
  }

  /** The oldest call that takes longer than this many milliseconds; undefined if there is none. */
  stuck(limitMs: number): { readonly name: string; readonly ageMs: number } | undefined {
    const now = this.clock.now().mono;
    // They were added in the order of their age.
    const oldest = [...this.calls].find(({ name }) => !UNBOUNDED.has(name));
    if (oldest === undefined || now - oldest.since <= limitMs) return undefined;
    return { name: oldest.name, ageMs: now - oldest.since };
  }
}
