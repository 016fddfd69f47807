import assert from "node:assert/strict";
import { test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import type { EndedSpan } from "../../lib/tracer.ts";
import { EXPORT, otlpSender } from "./compose.ts";
import type { ExportTraceServiceRequest } from "./generated/trace.ts";
import { ExportTraceServiceResponse } from "./generated/trace.ts";

const never = { signal: new AbortController().signal };
const resource = { attributes: { "service.name": "kubelet" }, scope: { name: "kubelet-ts", version: "1" } };
const span: EndedSpan = {
  traceId: "0123456789abcdef0123456789abcdef",
  spanId: "0123456789abcdef",
  parentSpanId: "fedcba9876543210",
  isSampled: true,
  name: "runtime.v1.RuntimeService/RunPodSandbox",
  kind: "client",
  startedAt: 1_770_000_000_123.25,
  endedAt: 1_770_000_000_124.5,
  attributes: { text: "t", whole: 3, part: 0.5, flag: true },
  error: "no network",
};

test("a batch arrives at the collector with ids, times in nanoseconds, attributes by type, and its status", async () => {
  const server = new CriServer();
  let request: ExportTraceServiceRequest | undefined;
  server.unary(EXPORT, (call, callback) => {
    request = call.request;
    callback(null, ExportTraceServiceResponse.fromPartial({}));
  });
  await server.start();
  const sender = otlpSender(`unix://${server.socket}`, resource);
  try {
    await sender.send([span], never);
  } finally {
    sender.close();
    await server.stop();
  }
  const [group] = request?.resourceSpans ?? [];
  assert.equal(group?.resource?.attributes[0]?.value?.stringValue, "kubelet");
  assert.equal(group?.scopeSpans[0]?.scope?.name, "kubelet-ts");
  const [sent] = group?.scopeSpans[0]?.spans ?? [];
  const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");
  assert.deepEqual(
    [hex(sent?.traceId), hex(sent?.spanId), hex(sent?.parentSpanId)],
    [span.traceId, span.spanId, span.parentSpanId],
  );
  assert.equal(sent?.startTimeUnixNano, 1_770_000_000_123_250_000n);
  assert.equal(sent?.endTimeUnixNano, 1_770_000_000_124_500_000n);
  assert.deepEqual([sent?.kind, sent?.status], [3, { code: 2, message: "no network" }]);
  const values = Object.fromEntries((sent?.attributes ?? []).map(({ key, value }) => [key, value]));
  assert.equal(values["text"]?.stringValue, "t");
  assert.equal(values["whole"]?.intValue, 3n);
  assert.equal(values["part"]?.doubleValue, 0.5);
  assert.equal(values["flag"]?.boolValue, true);
});

test("a collector that is not there fails the batch, not the agent", async () => {
  const sender = otlpSender("unix:///nowhere/at-all", resource);
  await assert.rejects(sender.send([span], never));
  sender.close();
});
