import { messageOf } from "../../lib/errors.ts";
import type { Tracer } from "../../lib/tracer.ts";
import type { ChannelOptions } from "./channel.ts";

/** Only calls of these services have spans: those that follow the progress of a pull are many and no work of a pod. */
const CRI = /^\/(runtime\.v1\.\w+)\/(\w+)$/;
/** The status code of gRPC for a failure without one. */
const UNKNOWN = 2;

/**
 * Returns the callback for GrpcChannel: a span of each CRI call, in the span that the caller runs in, by the names that
 * OpenTelemetry has for them; its context goes to the runtime as the metadata `traceparent`, as in Kubernetes.
 */
export function tracedCalls(tracer: Tracer): NonNullable<ChannelOptions["traced"]> {
  return (path) => {
    const [, service, method] = CRI.exec(path) ?? [];
    if (service === undefined || method === undefined) return undefined;
    const attributes = { "rpc.system": "grpc", "rpc.service": service, "rpc.method": method };
    const span = tracer.begin(`${service}/${method}`, { kind: "client", attributes, parent: tracer.active });
    const ended = (error?: unknown): void => {
      const code = error === undefined ? 0 : codeOf(error);
      span.end({
        attributes: { "rpc.grpc.status_code": code },
        ...(error !== undefined && { error: messageOf(error) }),
      });
    };
    return { metadata: { traceparent: span.traceparent }, ended };
  };
}

function codeOf(error: unknown): number {
  const code: unknown = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "number" ? code : UNKNOWN;
}
