import type { Metrics } from "../../lib/metrics.ts";
import type { RequestAnswer } from "./transport.ts";

/** Declares `rest_client_requests_total`; returns the callback for `KubeClients.onAnswer`. */
export function restClientMetrics(metrics: Metrics): (answer: RequestAnswer) => void {
  const labels = ["code", "method", "host"];
  const total = metrics.counter(
    "rest_client_requests_total",
    "Number of requests to the API server by status code.",
    labels,
  );
  return ({ code, method, host }) => total.inc([code, method, host]);
}
