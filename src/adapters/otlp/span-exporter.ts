import { type Abortable, isAborted, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Counter } from "../../lib/metrics.ts";
import type { EndedSpan } from "../../lib/tracer.ts";
import { Wakes } from "../../lib/wakes.ts";

/** Sends one batch of spans; rejects if the collector did not take it. */
export interface SpanSender {
  send(spans: readonly EndedSpan[], options: Abortable): Promise<void>;
  close(): void;
}

export interface SpanExporterDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly sender: SpanSender;
  /** Counts spans by outcome: `exported`, `dropped`, `failed`. */
  readonly spans: Pick<Counter, "inc">;
}

/** The defaults of OpenTelemetry's batch processor: spans that wait, spans of a batch, and how long one gathers. */
const QUEUE = 2048;
const BATCH = 512;
const GATHER_MS = 5000;
/** Time limit of one export. */
const SEND_MS = 10_000;
/** A batch is tried for so long, as in OpenTelemetry's exporter, with pauses that grow. */
const RETRY_MS = 60_000;
const FIRST_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 30_000;
/** What is left is sent for so long when the agent stops. */
const LAST_MS = 1000;

/**
 * Exports spans in batches, off the path of those who end them: adding one never waits, and one too many is dropped and
 * counted. Without spans it sleeps.
 */
export class SpanExporter {
  private queue: EndedSpan[] = [];
  private readonly wakes: Wakes;
  private isFailing = false;

  constructor(private readonly deps: SpanExporterDeps) {
    this.wakes = new Wakes(deps.clock);
  }

  add(span: EndedSpan): void {
    if (this.queue.length >= QUEUE) return this.deps.spans.inc(["dropped"]);
    this.queue.push(span);
    if (this.queue.length === 1 || this.queue.length === BATCH) this.wakes.wake();
  }

  /** Exports until the signal aborts, and then what is left, for a second at most. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, sender } = this.deps;
    try {
      while (!signal.aborted) {
        if (this.queue.length === 0) await this.wakes.sleep(undefined, signal);
        if (this.queue.length < BATCH) await this.wakes.sleep(GATHER_MS, signal);
        if (!signal.aborted && this.queue.length > 0) await this.export(signal);
      }
      const last = async (limited: AbortSignal): Promise<void> => {
        while (this.queue.length > 0) await this.send(this.queue.splice(0, BATCH), limited);
      };
      await withScope([], { clock, ms: LAST_MS }, last).catch(() => undefined);
    } finally {
      sender.close();
    }
  }

  private async export(signal: AbortSignal): Promise<void> {
    const { clock, log, spans } = this.deps;
    const batch = this.queue.splice(0, BATCH);
    const due = clock.now().mono + RETRY_MS;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      try {
        await withScope([signal], { clock, ms: SEND_MS }, (limited) => this.send(batch, limited));
        if (this.isFailing) log.info("Resumed exporting of traces");
        this.isFailing = false;
        return;
      } catch (error) {
        if (isAborted(error, signal) || signal.aborted) {
          this.queue.unshift(...batch);
          return;
        }
        if (!this.isFailing) log.warn("Failed to export traces", { spans: batch.length, error: messageOf(error) });
        this.isFailing = true;
        if (clock.now().mono + pauseMs > due) return spans.inc(["failed"], batch.length);
      }
      await clock.sleep(pauseMs, { signal }).catch(() => undefined);
    }
  }

  private async send(batch: readonly EndedSpan[], signal: AbortSignal): Promise<void> {
    await this.deps.sender.send(batch, { signal });
    this.deps.spans.inc(["exported"], batch.length);
  }
}
