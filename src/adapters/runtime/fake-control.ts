import type { Clock } from "../../lib/clock.ts";
import { type ImagePort, RuntimeError, type RuntimePort } from "./port.ts";

/** Every call of both ports that can be delayed, failed and counted. */
export type FakeMethod = Exclude<keyof RuntimePort, "events" | "eventSource"> | keyof ImagePort;

/** One call as it came in. */
export interface FakeCall {
  readonly method: FakeMethod;
  /** What it was about: an id, a name, an image. */
  readonly subject: string;
  /** Monotonic milliseconds. */
  readonly at: number;
}

interface Fault {
  readonly error: Error;
  /** The work is done and only the answer is lost. */
  readonly afterwards: boolean;
  left: number;
}

/** The scripted side of the fake runtime: delays, faults, absence, and the log of calls. */
export class FakeControl {
  /** Every call since the beginning, oldest first. */
  readonly calls: FakeCall[] = [];
  private readonly delays = new Map<FakeMethod, number>();
  private readonly faults = new Map<FakeMethod, Fault[]>();
  private readonly running = new Map<FakeMethod, number>();
  private readonly peaks = new Map<FakeMethod, number>();
  /** Ends the calls under way when the runtime becomes unavailable. */
  private readonly cuts = new Set<() => void>();
  private away = false;
  /** How often it became unavailable: a call from before does nothing after it. */
  private departures = 0;

  constructor(private readonly deps: { clock: Clock }) {}

  /** Each later call of the method takes this long on the injected clock before it does anything. */
  delay(method: FakeMethod, ms: number): void {
    this.delays.set(method, ms);
  }

  /** The next `times` calls of the method fail before they do anything. Scripted faults queue up. */
  fail(method: FakeMethod, error: Error, times = 1): void {
    this.addFault(method, { error, afterwards: false, left: times });
  }

  /** The next `times` calls do their work and fail all the same, as when the answer is lost. */
  failAfterwards(method: FakeMethod, error: Error, times = 1): void {
    this.addFault(method, { error, afterwards: true, left: times });
  }

  get isAway(): boolean {
    return this.away;
  }

  /** From now on every call fails with Unavailable, those under way at once; or no longer. */
  set isAway(away: boolean) {
    this.away = away;
    if (away) this.departures++;
    if (away) for (const cut of [...this.cuts]) cut();
  }

  /** Takes back every scripted fault that has not struck yet. */
  heal(): void {
    this.faults.clear();
  }

  /** How often the method was called, failed calls included. */
  count(method: FakeMethod): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  /** How many calls of the method go on now. */
  inFlight(method: FakeMethod): number {
    return this.running.get(method) ?? 0;
  }

  /** The most calls of the method that ever went on at once. */
  peak(method: FakeMethod): number {
    return this.peaks.get(method) ?? 0;
  }

  /** Runs one call of a port with all that is scripted for it. */
  async around<T>(
    [method, subject]: readonly [FakeMethod, string],
    signal: AbortSignal,
    work: () => T | Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    this.calls.push({ method, subject, at: this.deps.clock.now().mono });
    this.running.set(method, this.inFlight(method) + 1);
    this.peaks.set(method, Math.max(this.peak(method), this.inFlight(method)));
    let cut = (): void => undefined;
    const lost = new Promise<never>((_, reject) => {
      cut = (): void => reject(unavailable());
    });
    this.cuts.add(cut);
    try {
      if (this.away) throw unavailable();
      return await Promise.race([lost, this.perform(method, signal, work)]);
    } finally {
      this.cuts.delete(cut);
      this.running.set(method, this.inFlight(method) - 1);
    }
  }

  private async perform<T>(method: FakeMethod, signal: AbortSignal, work: () => T | Promise<T>): Promise<T> {
    const delayMs = this.delays.get(method) ?? 0;
    const { departures } = this;
    // At least one turn, as every real call has.
    await (delayMs > 0 ? this.deps.clock.sleep(delayMs, { signal }) : Promise.resolve());
    // Gone meanwhile: a call that was not yet heard does nothing.
    if (this.away || this.departures !== departures) throw unavailable();
    const fault = this.takeFault(method);
    if (fault !== undefined && !fault.afterwards) throw fault.error;
    const result = await work();
    if (fault !== undefined) throw fault.error;
    return result;
  }

  private addFault(method: FakeMethod, fault: Fault): void {
    this.faults.set(method, [...(this.faults.get(method) ?? []), fault]);
  }

  private takeFault(method: FakeMethod): Fault | undefined {
    const queue = this.faults.get(method) ?? [];
    const [fault] = queue;
    if (fault === undefined) return undefined;
    fault.left -= 1;
    if (fault.left <= 0) queue.shift();
    return fault;
  }
}

function unavailable(): RuntimeError {
  return new RuntimeError("Unavailable", "the fake runtime is unavailable");
}
