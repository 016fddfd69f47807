import { ApiError } from "../adapters/kubeapi/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { KeyedBackoff } from "../lib/backoff.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { KeyedQueue } from "../lib/keyed-queue.ts";
import { Lane } from "../lib/lane.ts";
import { fixed } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import { untilAborted } from "../lib/loop.ts";
import { eventLoopTurn } from "../lib/turn.ts";

/** What a reconciliation asks for: nothing, or to be run again after a while even if nothing changes. */
export type Outcome = { readonly afterMs?: number } | undefined;

export interface ReconcilerDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

export interface ReconcilerOptions {
  /** For log lines. */
  readonly name: string;
  /**
   * Brings what is there to what one object wants. It reads everything anew, may be repeated at any time, and never runs
   * twice at once for a key. A failure makes it run again after a back-off.
   */
  reconcile(key: string, options: Abortable): Promise<Outcome>;
}

/**
 * A wait is by the clock on the wall, a timer is not: after a jump of that clock, or a sleep of the machine, what waits for
 * a moment is looked at again within this time.
 */
const LONGEST_WAIT_MS = 5 * 60_000;
const BACKOFF = { initialMs: 10, maxMs: 60_000, jitter: 0.1 };
/** Keys that are reconciled at a time: thousands may be woken at once. */
const MOST_AT_ONCE = 16;
/** After so many milliseconds of reconciling others get a turn. */
const BUSY_MS = 10;

/** Runs a reconciliation for each key that is woken, and again when it failed or asked for it. */
export class Reconciler {
  private readonly queue: KeyedQueue<string>;
  private readonly backoff = new KeyedBackoff<string>(BACKOFF);
  private readonly timers = new Map<string, Timer>();
  private readonly lane = new Lane(fixed(MOST_AT_ONCE), { signal: new AbortController().signal });
  /** When others had their last turn, and the one that they have now. */
  private turnAt = 0;
  private turn: Promise<void> | undefined;

  constructor(
    private readonly deps: ReconcilerDeps,
    private readonly options: ReconcilerOptions,
  ) {
    this.queue = new KeyedQueue((key, signal) => this.run1(key, signal), {
      onError: (key, error) => this.deps.log.error("Failed to reconcile", error, { controller: options.name, key }),
    });
  }

  /** Asks for a reconciliation of the key: `namespace/name`, or a name. */
  wake(key: string): void {
    this.timers.get(key)?.cancel();
    this.timers.delete(key);
    this.queue.wake(key);
  }

  /** Resolves when nothing runs and nothing is asked for; timers do not count. */
  idle(): Promise<void> {
    return this.queue.idle();
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await untilAborted(signal);
    for (const timer of this.timers.values()) timer.cancel();
    await this.queue.close();
  }

  private async run1(key: string, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    try {
      const outcome = await this.lane.run(() => this.inTurn(key, { signal }), { signal });
      this.backoff.reset(key);
      if (outcome?.afterMs !== undefined) this.later(key, outcome.afterMs);
    } catch (error) {
      if (isAborted(error, signal)) return;
      const delayMs = this.backoff.next(key, clock.now());
      // A bug that one object brings up must not stop the others, nor the node at each start.
      if (!(error instanceof ApiError)) {
        log.error("Failed to reconcile, retrying", error, { controller: this.options.name, key, delayMs });
      }
      // A conflict means that somebody else wrote first: the next run sees what.
      else if (error.code !== "Conflict") {
        log.info("Failed to reconcile, retrying", {
          controller: this.options.name,
          key,
          error: error.message,
          delayMs,
        });
      }
      this.later(key, delayMs);
    }
  }

  /** Reconciles a key, once others had a turn if that is due. Who waited for it looks again: others came back, too. */
  private async inTurn(key: string, options: Abortable): Promise<Outcome> {
    const { clock } = this.deps;
    if (this.lane.running <= 1 && this.lane.waiting === 0) this.turnAt = clock.now().mono;
    while (clock.now().mono - this.turnAt > BUSY_MS) {
      this.turn ??= eventLoopTurn().then(() => {
        this.turn = undefined;
        this.turnAt = clock.now().mono;
      });
      await this.turn;
    }
    return this.options.reconcile(key, options);
  }

  private later(key: string, ms: number): void {
    this.timers.get(key)?.cancel();
    const timer = this.deps.clock.after(Math.min(ms, LONGEST_WAIT_MS), () => {
      this.timers.delete(key);
      this.queue.wake(key);
    });
    this.timers.set(key, timer);
  }
}
