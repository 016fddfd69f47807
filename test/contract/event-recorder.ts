import type { RuntimeEvent, RuntimePort } from "../../src/adapters/runtime/port.ts";
import type { Clock } from "../../src/lib/clock.ts";

/** Reads a runtime's events in the background and lets a test wait for one. */
export class EventRecorder {
  readonly events: RuntimeEvent[] = [];
  private readonly controller = new AbortController();
  private readonly reading: Promise<void>;
  private readonly listeners = new Set<() => void>();

  constructor(
    runtime: RuntimePort,
    private readonly clock: Clock,
    private readonly onEvent: (event: RuntimeEvent) => Promise<void> = async () => undefined,
  ) {
    this.reading = this.read(runtime);
  }

  /** The first event at or after `from` that fits; rejects after `limitMs`. */
  async next(fits: (event: RuntimeEvent) => boolean, { from = 0, limitMs = 30_000 } = {}): Promise<RuntimeEvent> {
    const until = this.clock.now().mono + limitMs;
    for (;;) {
      const found = this.events.slice(from).find(fits);
      if (found !== undefined) return found;
      const left = until - this.clock.now().mono;
      if (left <= 0) throw new Error(`no such event in ${limitMs} ms; got ${JSON.stringify(this.events.slice(from))}`);
      await this.change(left);
    }
  }

  /** The first event of this type about this container or sandbox. */
  about(id: string, type: string): Promise<RuntimeEvent> {
    return this.next((event) => event.kind === "container" && event.id === id && event.type === type);
  }

  /** Ends with the test, however that ends: reading would keep the process alive. */
  endsWith(test: { after(fn: () => Promise<void>): void }): this {
    test.after(() => this.stop().catch(() => undefined));
    return this;
  }

  /** Ends the subscription; rejects if reading failed. */
  async stop(): Promise<void> {
    this.controller.abort();
    await this.reading;
  }

  private async read(runtime: RuntimePort): Promise<void> {
    for await (const event of runtime.events({ signal: this.controller.signal })) {
      await this.onEvent(event);
      this.events.push(event);
      for (const listener of [...this.listeners]) listener();
    }
  }

  private change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.listeners.delete(done);
        resolve();
      };
      const timer = this.clock.after(ms, done);
      this.listeners.add(done);
    });
  }
}
