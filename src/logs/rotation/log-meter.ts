import { isAborted } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { nextCheckMs, onGrid, SHORTEST_MS } from "./check-delay.ts";
import type { CheckSchedule } from "./check-schedule.ts";
import { LogSize } from "./log-size.ts";
import type { RotationFiles } from "./rotate.ts";

/** Checks and milliseconds without growth after which a log counts as idle: close to the limit checks follow quickly. */
const IDLE_CHECKS = 3;
const IDLE_MS = 1000;

/** What a meter needs; options are read at each check. */
export interface MeterDeps {
  readonly files: Pick<RotationFiles, "size" | "open" | "onceWritten">;
  readonly clock: Clock;
  readonly checks: Pick<CheckSchedule, "set" | "cancel">;
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
  private endWatch: (() => void) | undefined;
  private last: { size: number; mono: number } | undefined;
  private idleChecks = 0;
  private grownAt = 0;
  private isClosed = false;
  private isChecking = false;
  private isNew = true;
  private readonly size: LogSize;

  constructor(
    private readonly path: string,
    private readonly deps: MeterDeps,
    private readonly signal: AbortSignal,
  ) {
    this.size = new LogSize(path, deps);
    this.schedule(0);
  }

  /** Checks now, for example because the limit has changed. */
  recheck(): void {
    if (!this.isChecking) this.schedule(0);
  }

  close(): void {
    this.isClosed = true;
    this.deps.checks.cancel(this.check);
    this.endWatch?.();
    this.size.close();
  }

  private schedule(ms: number): void {
    if (this.isClosed || this.signal.aborted) return;
    this.endWatch?.();
    this.endWatch = undefined;
    this.deps.checks.set(this.check, ms);
  }

  private readonly check = (): void => {
    const size = this.size.readOpen();
    if (size === undefined || size >= this.deps.maxBytes()) return void this.checkClosely();
    // The usual case, many times a second: without a thread and without a promise.
    const delayMs = this.delayAfter(size);
    if (delayMs === undefined) this.watch();
    else this.schedule(delayMs);
  };

  private async checkClosely(): Promise<void> {
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
    const size = await this.size.read();
    if (this.isClosed) return undefined;
    const maxBytes = this.deps.maxBytes();
    if (size === undefined || size >= maxBytes) {
      this.last = undefined;
      this.size.reopen();
      await this.deps.act(size === undefined ? "missing" : "full");
      return size === undefined ? this.deps.intervalMs() : SHORTEST_MS;
    }
    if (this.isNew) {
      // Most logs are not being written when they are found: no timer and no descriptor for those.
      this.isNew = false;
      this.last = { size, mono: this.deps.clock.now().mono };
      return undefined;
    }
    const delayMs = this.delayAfter(size);
    if (delayMs !== undefined) await this.size.expect(delayMs);
    return delayMs;
  }

  /** Notes the size of a log below its limit; returns as `measure` does. */
  private delayAfter(size: number): number | undefined {
    const { mono } = this.deps.clock.now();
    const before = this.last;
    this.last = { size, mono };
    const grown = before === undefined ? 0 : Math.max(0, size - before.size);
    this.idleChecks = before !== undefined && grown === 0 ? this.idleChecks + 1 : 0;
    if (this.idleChecks === 0) this.grownAt = mono;
    if (this.idleChecks >= IDLE_CHECKS && mono - this.grownAt >= IDLE_MS) return undefined;
    const seconds = before === undefined ? 0 : (mono - before.mono) / 1000;
    const bytesPerSecond = seconds > 0 ? grown / seconds : 0;
    const growth = { size, maxBytes: this.deps.maxBytes(), bytesPerSecond };
    return onGrid(nextCheckMs(growth, this.deps.intervalMs()), mono);
  }

  private watch(): void {
    if (this.isClosed || this.signal.aborted) return;
    this.idleChecks = 0;
    this.size.release();
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
