import { LogError, type LogWrite, type ObjectLog } from "./port.ts";

/** Keeps nothing: for tests, and for callers that only need the API. Fails as often as a test asks for. */
export class MemoryLog implements ObjectLog {
  /** Everything that was acknowledged, in order. */
  readonly writes: LogWrite[] = [];
  /** Set by tests: the next appends reject with it. */
  failure: LogError | undefined;

  async append(writes: readonly LogWrite[]): Promise<void> {
    await Promise.resolve();
    if (this.failure !== undefined) throw this.failure;
    this.writes.push(...writes);
  }

  async close(): Promise<void> {
    this.failure = new LogError("Closed", "append: the log was closed");
  }
}
