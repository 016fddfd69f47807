import type { HttpRoute } from "../adapters/net/http-route.ts";
import { parseTraceparent, type SpanContext, type Tracer } from "../lib/tracer.ts";

export interface TracedRoutesOptions {
  /** Whoever may connect may not decide about traces: each request begins one of its own. */
  readonly isPublic: boolean;
}

/**
 * The same routes with a span for each request, by the names that OpenTelemetry has for them. A request continues the
 * trace that it carries (W3C `traceparent`); what a handler calls is part of its span. Without a tracer, as they are.
 */
export function tracedRoutes(
  tracer: Tracer | undefined,
  routes: readonly HttpRoute[],
  { isPublic }: TracedRoutesOptions,
): readonly HttpRoute[] {
  if (tracer === undefined) return routes;
  return routes.map((route): HttpRoute => {
    return {
      ...route,
      handle: async (request) => {
        const attributes = {
          "http.request.method": request.method,
          "http.route": route.path,
          "url.path": request.path,
        };
        const parent = isPublic ? undefined : carried(request.headers["traceparent"]);
        const span = tracer.begin(route.path, { kind: "server", attributes, parent });
        return tracer.run(span, async () => {
          const answer = await route.handle(request);
          span.end({
            attributes: { "http.response.status_code": answer.status },
            ...(answer.status >= 500 && { error: `status ${answer.status}` }),
          });
          return answer;
        });
      },
    };
  });
}

function carried(header: string | undefined): SpanContext | undefined {
  return header === undefined ? undefined : parseTraceparent(header);
}
