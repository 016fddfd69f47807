import type { Metrics } from "../../lib/metrics.ts";
import type { EndedCall } from "../grpc/channel.ts";
import type { EventsListener } from "./listeners.ts";

/** 5 ms, each bound 2.5 times the one before, as in Kubernetes; the last is twelve minutes. */
const BUCKETS = Array.from({ length: 14 }, (_, power) => 0.005 * 2.5 ** power);

/** Kubernetes' words for methods whose name does not give them. */
const NAMES: Readonly<Record<string, string>> = {
  UpdateContainerResources: "update_container",
};

/** `RunPodSandbox` → `run_podsandbox`: the `operation_type` of a method. Undefined for what is not CRI's. Pure. */
export function operationOf(path: string): string | undefined {
  const name = /^\/runtime\.v1\.\w+\/(\w+)$/.exec(path)?.[1];
  if (name === undefined) return undefined;
  const known = NAMES[name];
  if (known !== undefined) return known;
  return name
    .replace("PodSandbox", "Podsandbox")
    .replace(/(?<=[a-z])(?=[A-Z])/g, "_")
    .toLowerCase();
}

/** Declares `kubelet_runtime_operations_*`; returns the callback for each call. One for all connections of an agent. */
export function runtimeCallMetrics(metrics: Metrics): (call: EndedCall) => void {
  const labels = ["operation_type"];
  const total = metrics.counter("kubelet_runtime_operations_total", "Calls to the runtime.", labels);
  const errors = metrics.counter(
    "kubelet_runtime_operations_errors_total",
    "Calls to the runtime that failed.",
    labels,
  );
  const duration = metrics.histogram("kubelet_runtime_operations_duration_seconds", "How long calls took.", {
    labels,
    buckets: BUCKETS,
  });
  const handler = ["runtime_handler"];
  const sandboxes = metrics.histogram("kubelet_run_podsandbox_duration_seconds", "How long sandboxes took.", handler);
  const failures = metrics.counter(
    "kubelet_run_podsandbox_errors_total",
    "Sandboxes that the runtime did not make.",
    handler,
  );
  const names = new Map<string, readonly [string] | undefined>();
  return ({ path, tookMs, error, handler: of }) => {
    if (!names.has(path)) {
      const name = operationOf(path);
      names.set(path, name === undefined ? undefined : [name]);
    }
    const name = names.get(path);
    if (name === undefined) return;
    total.inc(name);
    duration.observe(tookMs / 1000, name);
    if (error !== undefined) errors.inc(name);
    if (of === undefined) return;
    sandboxes.observe(tookMs / 1000, [of]);
    if (error !== undefined) failures.inc([of]);
  };
}

/** Declares `kubelet_evented_pleg_connection_*`; returns the callback for the connection of events. */
export function eventMetrics(metrics: Metrics): EventsListener {
  const name = (what: string): string => `kubelet_evented_pleg_connection_${what}`;
  const made = metrics.counter(name("success_count"), "Connections for the runtime's events.");
  const lost = metrics.counter(name("error_count"), "Lost or failed connections for the runtime's events.");
  const latency = metrics.histogram(name("latency_seconds"), "How late the runtime's events came.");
  return (what) => {
    if (what === "connected") made.inc();
    else if (what === "lost") lost.inc();
    else latency.observe(Math.max(0, what.lateMs) / 1000);
  };
}
