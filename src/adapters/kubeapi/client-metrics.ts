import type { Metrics } from "../../lib/metrics.ts";
import type { RequestAnswer } from "./transport.ts";

/** Seconds, as in client-go. */
const LATENCY_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** Declares the metrics of API requests; returns the callback for `KubeClients.onAnswer`. */
export function restClientMetrics(metrics: Metrics): (answer: RequestAnswer) => void {
  const labels = ["code", "method", "host"];
  const total = metrics.counter(
    "rest_client_requests_total",
    "Number of requests to the API server by status code.",
    labels,
  );
  const duration = metrics.histogram(
    "rest_client_request_duration_seconds",
    "Request latency in seconds. Broken down by verb, and host.",
    { labels: ["verb", "host"], buckets: LATENCY_BUCKETS },
  );
  return ({ code, method, host, tookMs }) => {
    total.inc([code, method, host]);
    if (tookMs !== undefined) duration.observe(tookMs / 1000, [method, host]);
  };
}
