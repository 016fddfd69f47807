import { type BackoffState, nextBackoff } from "../lib/backoff.ts";
import type { Instant } from "../lib/clock.ts";

/** 10 s doubling to 5 min, as in Kubernetes. */
export const PULL_BACKOFF = { initialMs: 10_000, maxMs: 300_000 };
/** A failure this long after the one before is the first again, as in Kubernetes; a successful pull changes nothing. */
const EXPIRES_MS = 2 * PULL_BACKOFF.maxMs;

/** How long a pull is still held back, and why the last one failed. */
export interface HeldBack {
  readonly afterMs: number;
  /** `ErrImagePull: not found`. */
  readonly cause: string;
}

/** The back-off of failed pulls, for each image of each pod. */
export class PullBackoff {
  private readonly entries = new Map<string, { readonly state: BackoffState; readonly cause: string }>();

  /** Records a failure; returns the milliseconds until the next pull. */
  failed(key: string, cause: string, now: Instant): number {
    // Deleted pods leave entries behind.
    for (const [other, { state }] of this.entries) if (isExpired(state, now)) this.entries.delete(other);
    const state = nextBackoff(this.entries.get(key)?.state, now, PULL_BACKOFF);
    this.entries.set(key, { state, cause });
    return state.delayMs;
  }

  /** Undefined if a pull may be tried. */
  heldBack(key: string, now: Instant): HeldBack | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined || entry.state.notBefore <= now.mono) return undefined;
    return { afterMs: entry.state.notBefore - now.mono, cause: entry.cause };
  }
}

function isExpired({ since }: BackoffState, now: Instant): boolean {
  return now.mono - since.mono > EXPIRES_MS;
}
