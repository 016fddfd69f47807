import { isAborted } from "../../lib/abort.ts";
import type { Clock, Timer } from "../../lib/clock.ts";
import { nextCheckMs, SHORTEST_MS } from "./check-delay.ts";
import type { RotationFiles } from "./rotate.ts";

/** Checks without growth after which a log counts as idle. */
const IDLE_CHECKS = 3;

/** What a meter needs; options are read at each check. */
export interface MeterDeps {
  readonly files: Pick<RotationFiles, "size" | "onceWritten">;
  readonly clock: Clock;
  maxBytes(): number;
  intervalMs(): number;
  /** The log has reached its limit, or is missing. The next check follows when it has resolved; a rejection delays it. */
  act(state: "full" | "missing"): Promise<void>;
  /** A check or `act` failed. */
  failed(error: unknown): void;
}

/**
 * Follows the size of one log. An idle log costs one watch and no timer; a growing one is measured the more often the
 * closer it is to its limit.
 *
 *     watching ──written──► measuring ──full──► rotating ──► measuring
 *         ▲───── no growth ─────┘  ▲──── failed: after the interval ───┘
 */
export class LogMeter {
  private timer: Timer | undefined;
  private endWatch: (() => void) | undefined;
  private last: { size: number; mono: number } | undefined;
  private idleChecks = 0;
  private isClosed = false;
  private isChecking = false;

  constructor(
    private readonly path: string,
    private readonly deps: MeterDeps,
    private readonly signal: AbortSignal,
  ) {
    this.schedule(0);
  }

  /** Checks now, for example because the limit has changed. */
  recheck(): void {
    if (!this.isChecking) this.schedule(0);
  }

  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
    this.endWatch?.();
  }

  private schedule(ms: number): void {
    if (this.isClosed || this.signal.aborted) return;
    this.timer?.cancel();
    this.endWatch?.();
    this.endWatch = undefined;
    this.timer = this.deps.clock.after(ms, () => void this.check());
  }

  private async check(): Promise<void> {
    this.isChecking = true;
    let delayMs: number | undefined;
    try {
      delayMs = await this.measure();
    } catch (error) {
      delayMs = this.deps.intervalMs();
      if (!isAborted(error, this.signal)) this.deps.failed(error);
    } finally {
      this.isChecking = false;
    }
    if (delayMs === undefined) this.watch();
    else this.schedule(delayMs);
  }

  /** Returns the milliseconds until the next check; undefined: when the log is written to. */
  private async measure(): Promise<number | undefined> {
    const { files, clock } = this.deps;
    const size = await files.size(this.path);
    if (this.isClosed) return undefined;
    const maxBytes = this.deps.maxBytes();
    if (size === undefined || size >= maxBytes) {
      this.last = undefined;
      await this.deps.act(size === undefined ? "missing" : "full");
      return size === undefined ? this.deps.intervalMs() : SHORTEST_MS;
    }
    const { mono } = clock.now();
    const before = this.last;
    this.last = { size, mono };
    const grown = before === undefined ? 0 : Math.max(0, size - before.size);
    this.idleChecks = before !== undefined && grown === 0 ? this.idleChecks + 1 : 0;
    if (this.idleChecks >= IDLE_CHECKS) return undefined;
    const seconds = before === undefined ? 0 : (mono - before.mono) / 1000;
    const bytesPerSecond = seconds > 0 ? grown / seconds : 0;
    return nextCheckMs({ size, maxBytes, bytesPerSecond }, this.deps.intervalMs());
  }

  private watch(): void {
    if (this.isClosed || this.signal.aborted) return;
    this.idleChecks = 0;
    try {
      this.endWatch = this.deps.files.onceWritten(this.path, () => this.schedule(0));
    } catch {
      // No watches left: the interval has to do, as in Kubernetes.
      this.schedule(this.deps.intervalMs());
      return;
    }
    void this.checkUnseen();
  }

  /** What was written between the last check and the watch is not lost. */
  private async checkUnseen(): Promise<void> {
    const size = await this.deps.files.size(this.path).catch(() => undefined);
    if (this.endWatch !== undefined && size !== this.last?.size) this.schedule(0);
  }
}
