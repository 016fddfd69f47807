import { AsyncLocalStorage } from "node:async_hooks";
import { randomFillSync } from "node:crypto";
import { AbortedError } from "./abort.ts";
import { clip } from "./bounded-text.ts";
import type { Clock, Instant } from "./clock.ts";
import { messageOf } from "./errors.ts";

export type SpanKind = "internal" | "client" | "server";
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** What identifies a span in this process and in others: the W3C trace context. */
export interface SpanContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** A span that has ended, to be exported. Times are wall-clock milliseconds with fractions. */
export interface EndedSpan extends SpanContext {
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: SpanAttributes;
  /** The message of what it failed by. */
  readonly error?: string | undefined;
}

export interface SpanOptions {
  readonly kind?: SpanKind;
  readonly attributes?: SpanAttributes;
  /** A span of this process, the context that a request carries, or undefined for a new trace. */
  readonly parent: Span | SpanContext | undefined;
  /** Exported only if another span began in it: what turned out to be nothing to do is not worth a span. */
  readonly isOptional?: boolean;
  /** One of several steps of the span around it, entered by a call: no other span is part of it but those of its calls. */
  readonly isStep?: boolean;
}

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
const PER_MILLION = 1_000_000;
/** Of a name, a text attribute or an error message: pods and runtimes choose them. */
const TEXT_BYTES = 1024;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** One span. Its end may be called once; later calls do nothing. */
export class Span {
  isEnded = false;
  /** False for an optional span in which nothing began. */
  isUsed: boolean;
  /** One clock for a whole trace of this process: wall-clock time may jump meanwhile. */
  readonly anchor: Instant;
  private readonly startedAt: number;

  constructor(
    readonly context: SpanContext,
    readonly options: SpanOptions & { readonly name: string },
    private readonly owner: { now(): Instant; ended(span: EndedSpan): void },
  ) {
    const now = owner.now();
    this.anchor = this.parent?.anchor ?? now;
    this.startedAt = this.at(now);
    this.isUsed = options.isOptional !== true;
    for (let above = this.parent; this.isUsed && above !== undefined && !above.isUsed; above = above.parent) {
      above.isUsed = true;
    }
  }

  /** The span of this process that it began in. */
  get parent(): Span | undefined {
    return this.options.parent instanceof Span ? this.options.parent : undefined;
  }

  /** The value of the header `traceparent` for what is called in this span. */
  get traceparent(): string {
    const { traceId, spanId, isSampled } = this.context;
    return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
  }

  end({ error, attributes }: { readonly error?: string | undefined; readonly attributes?: SpanAttributes } = {}): void {
    if (this.isEnded) return;
    this.isEnded = true;
    if (!this.isUsed || !this.context.isSampled) return;
    const { name, kind = "internal", parent } = this.options;
    const parentSpanId = parent instanceof Span ? parent.context.spanId : parent?.spanId;
    this.owner.ended({
      ...this.context,
      ...(parentSpanId !== undefined && { parentSpanId }),
      name: clip(name, TEXT_BYTES),
      kind,
      startedAt: this.startedAt,
      endedAt: this.at(this.owner.now()),
      attributes: clipped({ ...this.options.attributes, ...attributes }),
      ...(error !== undefined && { error: clip(error, TEXT_BYTES) }),
    });
  }

  private at({ mono }: Instant): number {
    return this.anchor.wall + (mono - this.anchor.mono);
  }
}

/**
 * Begins spans, and knows the one that the running code belongs to, across awaits. Which traces are sampled depends on
 * their id alone, so that every component with the same ratio chooses the same ones, as in OpenTelemetry.
 */
export class Tracer {
  private readonly storage = new AsyncLocalStorage<Span>();
  private readonly pool = Buffer.alloc(240 * (TRACE_BYTES + SPAN_BYTES));
  private used = this.pool.length;
  private readonly owner: ConstructorParameters<typeof Span>[2];

  constructor(
    { clock, ended }: { readonly clock: Clock; ended(span: EndedSpan): void },
    private readonly options: { readonly samplingRatePerMillion: number },
  ) {
    this.owner = { now: () => clock.now(), ended };
  }

  /** The innermost span that the running code belongs to and that has not ended. */
  get active(): Span | undefined {
    let span = this.storage.getStore();
    while (span?.isEnded) span = span.parent;
    return span;
  }

  begin(name: string, options: SpanOptions): Span {
    const parent = options.parent instanceof Span ? options.parent.context : options.parent;
    const traceId = parent?.traceId ?? this.random(TRACE_BYTES);
    const isSampled = parent?.isSampled ?? this.samples(traceId);
    return new Span({ traceId, spanId: this.random(SPAN_BYTES), isSampled }, { ...options, name }, this.owner);
  }

  /** Runs work in a span and ends it with the work. */
  async run<T>(span: Span, work: () => Promise<T>): Promise<T> {
    try {
      const result = await this.storage.run(span, work);
      span.end();
      return result;
    } catch (error) {
      span.end(error instanceof AbortedError ? {} : { error: messageOf(error) });
      throw error;
    }
  }

  /** Makes a span that of the code that runs after this call, until the span ends. */
  enter(span: Span): void {
    this.storage.enterWith(span);
  }

  /** The lower 63 bits of the id below the ratio, as in OpenTelemetry. */
  private samples(traceId: string): boolean {
    const { samplingRatePerMillion: rate } = this.options;
    if (rate <= 0) return false;
    const bound = (BigInt(rate) << 63n) / BigInt(PER_MILLION);
    return rate >= PER_MILLION || BigInt(`0x${traceId.slice(TRACE_BYTES)}`) >> 1n < bound;
  }

  private random(bytes: number): string {
    if (this.used + bytes > this.pool.length) {
      randomFillSync(this.pool);
      this.used = 0;
    }
    this.used += bytes;
    const hex = this.pool.toString("hex", this.used - bytes, this.used);
    // An id of zeros is not valid.
    return /[1-9a-f]/.test(hex) ? hex : this.random(bytes);
  }
}

/** The context of a `traceparent` header; undefined if it is not valid. Pure. */
export function parseTraceparent(header: string): SpanContext | undefined {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(header) ?? [];
  if (!/[1-9a-f]/.test(traceId) || !/[1-9a-f]/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

function clipped(attributes: SpanAttributes): SpanAttributes {
  return Object.fromEntries(
    Object.entries(attributes).map(([key, value]) => [
      key,
      typeof value === "string" ? clip(value, TEXT_BYTES) : value,
    ]),
  );
}
