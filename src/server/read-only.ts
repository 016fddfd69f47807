import { type HttpRoute, jsonAnswer } from "../adapters/net/http-route.ts";
import type { Pod } from "../model/generated/types.ts";
import { type HealthCheck, healthRoutes } from "./health.ts";

/** What the read-only port shows. */
export interface ReadOnlyDeps {
  /** The desired pods of all sources with their live status. */
  pods(): readonly Pod[];
  /** The metrics in the Prometheus text format. */
  metrics(): Promise<string>;
  readonly checks: readonly HealthCheck[];
}

const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** `/healthz`, `/pods` and `/metrics`, without authentication. */
export function readOnlyRoutes(deps: ReadOnlyDeps): HttpRoute[] {
  const pods: Omit<HttpRoute, "path"> = {
    methods: ["GET"],
    handle: () => jsonAnswer(200, { kind: "PodList", apiVersion: "v1", metadata: {}, items: deps.pods() }),
  };
  return [
    ...healthRoutes(deps.checks),
    { path: "/pods", ...pods },
    { path: "/pods/", ...pods },
    {
      methods: "any",
      path: "/metrics",
      handle: async () => ({ status: 200, type: METRICS_TYPE, body: await deps.metrics() }),
    },
  ];
}
