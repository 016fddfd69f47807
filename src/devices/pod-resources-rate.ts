import type { Clock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import { WorkPace } from "../lib/work-pace.ts";

/** The rate of the pod resources API, as in Kubernetes. */
const CALLS = { qps: 100, burst: 10 };
/**
 * Answers with very many devices: a device costs the agent about 2 µs, so that these take at most a quarter of a core. Four
 * agents that ask for 80,000 devices at the same time are answered.
 */
const DEVICES = { pieceMs: 0, itemMs: 0.008, burstMs: 2500 };

/** Limits the calls of the pod resources API by their number, and by how many devices they were answered with. */
export class PodResourcesRate {
  private readonly bucket: TokenBucket;
  private readonly pace: WorkPace;

  constructor(clock: Clock) {
    this.bucket = new TokenBucket(clock, fixed(CALLS));
    this.pace = new WorkPace(clock, DEVICES);
  }

  /** True if another call may be answered now. */
  mayCall(): boolean {
    return this.pace.isDue("") && this.bucket.tryTake();
  }

  /** Notes an answer with so many devices. */
  answered(devices: number): void {
    this.pace.spend("", devices);
  }
}
