import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { declareCertificateMetrics } from "./certificate-metrics.ts";
import { restClientMetrics } from "./client-metrics.ts";
import type { ApiConnection } from "./connect.ts";

/** Declares the metrics of the requests to the API server, and of the client certificate if it is rotated. */
export function connectionMetrics(
  metrics: Metrics,
  clock: Clock,
  connection: Pick<ApiConnection, "clients" | "certificate"> | undefined,
): void {
  connection?.clients.onAnswer(restClientMetrics(metrics));
  const facts = connection?.certificate;
  if (facts !== undefined) declareCertificateMetrics(metrics, clock, { kind: "client", facts });
}
