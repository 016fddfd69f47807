import type { EndedSpan, SpanAttributes, SpanKind } from "../../lib/tracer.ts";
import type { DeepPartial } from "../grpc/channel.ts";
import { type ExportTraceServiceRequest, type KeyValue, type Span, StatusCode } from "./generated/trace.ts";

/** What sends the spans. */
export interface SpanResource {
  readonly attributes: SpanAttributes;
  readonly scope: { readonly name: string; readonly version: string };
}

const KINDS: Readonly<Record<SpanKind, 1 | 2 | 3>> = { internal: 1, server: 2, client: 3 };
const NANOS_PER_MS = 1e6;
/** The flag of a trace that is sampled. */
const SAMPLED = 1;

/** A batch of spans as OTLP has it. Pure. */
export function toExportRequest(
  spans: readonly EndedSpan[],
  { attributes, scope }: SpanResource,
): DeepPartial<ExportTraceServiceRequest> {
  const resource = { attributes: toAttributes(attributes) };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(toSpan) }] }] };
}

function toSpan(span: EndedSpan): DeepPartial<Span> {
  const { name, parentSpanId, error } = span;
  return {
    traceId: Buffer.from(span.traceId, "hex"),
    spanId: Buffer.from(span.spanId, "hex"),
    ...(parentSpanId !== undefined && { parentSpanId: Buffer.from(parentSpanId, "hex") }),
    name,
    kind: KINDS[span.kind],
    startTimeUnixNano: toNanos(span.startedAt),
    endTimeUnixNano: toNanos(span.endedAt),
    attributes: toAttributes(span.attributes),
    ...(error !== undefined && { status: { code: StatusCode.STATUS_CODE_ERROR, message: error } }),
    flags: SAMPLED,
  };
}

function toAttributes(attributes: SpanAttributes): DeepPartial<KeyValue>[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: toValue(value) }));
}

function toValue(value: string | number | boolean): DeepPartial<KeyValue["value"]> {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: BigInt(value) } : { doubleValue: value };
}

/** Whole milliseconds and the rest apart: nanoseconds since 1970 are more than a number holds. */
function toNanos(ms: number): bigint {
  const whole = Math.floor(ms);
  return BigInt(whole) * BigInt(NANOS_PER_MS) + BigInt(Math.round((ms - whole) * NANOS_PER_MS));
}
