import { type agentOptions, isGateOn, type OptionStore } from "../../config/index.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { Tracer } from "../../lib/tracer.ts";
import { agentVersion } from "../../lib/version.ts";
import { GrpcChannel, method } from "../grpc/channel.ts";
import { ExportTraceServiceRequest, ExportTraceServiceResponse } from "./generated/trace.ts";
import { SpanExporter, type SpanSender } from "./span-exporter.ts";
import { type SpanResource, toExportRequest } from "./to-wire.ts";

const GATE = "KubeletTracing";
const DEFAULT_ENDPOINT = "localhost:4317";
/** The one method of a collector that the agent calls. */
export const EXPORT = method(
  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
  ExportTraceServiceRequest,
  ExportTraceServiceResponse,
);

/** Builds the tracer and the loop that exports its spans; without `tracing` in the configuration, neither. */
export function composeTracing(
  deps: { readonly clock: Clock; readonly log: Logger; readonly metrics: Metrics },
  store: OptionStore<typeof agentOptions>,
  nodeName: string,
): { readonly tracer: Tracer | undefined; readonly loops: readonly Loop[] } {
  const { tracing, featureGates } = store.current;
  if (tracing === undefined || !isGateOn(GATE, featureGates)) return { tracer: undefined, loops: [] };
  const { endpoint = DEFAULT_ENDPOINT, samplingRatePerMillion = 0 } = tracing;
  const resource: SpanResource = {
    attributes: { "service.name": "kubelet", "host.name": nodeName },
    scope: { name: "kubelet-ts", version: agentVersion },
  };
  const spans = deps.metrics.counter("kubelet_ts_trace_spans_total", "Number of sampled spans by outcome.", [
    "outcome",
  ]);
  const exporter = new SpanExporter({ ...deps, spans, sender: otlpSender(endpoint, resource) });
  const tracer = new Tracer({ clock: deps.clock, ended: (span) => exporter.add(span) }, { samplingRatePerMillion });
  return { tracer, loops: [{ name: "tracing", run: (signal) => exporter.run(signal) }] };
}

/** Sends to a collector over gRPC, without TLS as the kubelet does; connects at the first batch. */
export function otlpSender(endpoint: string, resource: SpanResource): SpanSender {
  let channel: GrpcChannel | undefined;
  return {
    send: async (spans, { signal }) => {
      channel ??= new GrpcChannel(targetOf(endpoint), undefined, { isTarget: true, hasOwnConnection: true });
      await channel.unary(EXPORT, toExportRequest(spans, resource), { signal });
    },
    close: () => channel?.close(),
  };
}

/** `unix-abstract:NAME` is a path that begins with a zero to those who connect. */
function targetOf(endpoint: string): string {
  return endpoint.replace(/^unix-abstract:(\/\/)?/, "unix:\0");
}
