import { type Abortable, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { CheckSlots } from "./check-slots.ts";
import type { VolumeCheck } from "./kind.ts";

/** Between two attempts of a check that fails, in milliseconds, as in Kubernetes. */
const BACKOFF = { initialMs: 500, maxMs: 122_000 };

export interface CheckLoopDeps {
  readonly clock: Clock;
  /** When checks run; one object for all volumes. */
  readonly slots: CheckSlots;
  /** Runs the check in its turn with what else is done to the volume. */
  inTurn(work: () => Promise<void>): Promise<void>;
  failed(error: unknown): void;
  /** From 0 to below 1; defaults to `Math.random`. */
  readonly random?: () => number;
}

/** Runs the check of a volume from time to time, until the signal aborts. */
export class CheckLoop {
  private check: VolumeCheck | undefined;
  private timer: Timer | undefined;
  private readonly backoff = new Backoff(BACKOFF);

  constructor(
    private readonly deps: CheckLoopDeps,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.timer?.cancel(), { once: true });
  }

  /** The volume was set up: this is its check from now on. The first comes at any time of the interval, to spread many. */
  follow(check: VolumeCheck | undefined): void {
    this.check = check;
    this.backoff.reset();
    this.plan((this.deps.random ?? Math.random)());
  }

  /** The next check, after a part of the interval at most. */
  private plan(part = 1): void {
    this.timer?.cancel();
    if (this.check === undefined || this.signal.aborted) return;
    const { everyMs } = this.check;
    this.timer = this.deps.slots.book(() => void this.run(), { withinMs: part * everyMs, everyMs });
  }

  private async run(): Promise<void> {
    const options: Abortable = { signal: this.signal };
    try {
      await this.deps.inTurn(async () => this.check?.run(options));
      this.backoff.reset();
      this.plan();
    } catch (error) {
      if (isAborted(error, this.signal)) return;
      this.deps.failed(error);
      const { clock } = this.deps;
      this.timer?.cancel();
      this.timer = clock.after(this.backoff.next(clock.now()), () => void this.run());
    }
  }
}
