import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";

const LABELS = ["method", "path", "server_type", "long_running"];
const METHODS = new Set(["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"]);
/** Paths that have a label of their own, by their first part and pages of metrics by two, as in Kubernetes; else `other`. */
const BUCKETS = new Set([
  ...["attach", "checkpoint", "configz", "containerLogs", "debug", "exec", "flagz", "healthz", "logs", "metrics"],
  ...["metrics/cadvisor", "metrics/probes", "metrics/resource", "pods", "portForward", "run", "runningpods"],
  ...["stats", "statusz"],
]);
const LONG_RUNNING = new Set(["exec", "attach", "portforward", "debug"]);

/** The labels of a request, from a bounded set: clients choose methods and paths. Pure. */
export function requestLabels(method: string, target: string, server: "readwrite" | "readonly"): string[] {
  const [first = "", second = ""] = (target.split("?", 1)[0] ?? "").replace(/^\/+/, "").split("/", 2);
  const root = first === "metrics" && second !== "" ? `${first}/${second}` : first;
  const path = BUCKETS.has(root) ? root : "other";
  return [METHODS.has(method) ? method : "other", path, server, String(LONG_RUNNING.has(path))];
}

/** The metrics of requests to all ports, by the names of Kubernetes. */
export class RequestMetrics {
  private readonly total;
  private readonly duration;
  private readonly inFlight;
  private readonly webSockets;

  constructor(
    private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.total = metrics.counter("kubelet_http_requests_total", "HTTP requests received.", LABELS);
    this.duration = metrics.histogram("kubelet_http_requests_duration_seconds", "How long HTTP requests took.", LABELS);
    this.inFlight = metrics.gauge("kubelet_http_inflight_requests", "HTTP requests that are being answered.", LABELS);
    this.webSockets = metrics.counter(
      "kubelet_websocket_streaming_requests_total",
      "Requests for streams by WebSocket.",
      ["subresource"],
    );
  }

  /** Counts a stream request over WebSocket. */
  streamed(subresource: "exec" | "attach" | "portforward"): void {
    this.webSockets.inc([subresource]);
  }

  /** Returns the callback for a listener's `observe`. */
  of(server: "readwrite" | "readonly"): (method: string, target: string) => () => void {
    return (method, target) => {
      const labels = requestLabels(method, target, server);
      const begun = this.clock.now().mono;
      this.total.inc(labels);
      this.inFlight.add(1, labels);
      return () => {
        this.inFlight.add(-1, labels);
        this.duration.observe((this.clock.now().mono - begun) / 1000, labels);
      };
    };
  }
}
