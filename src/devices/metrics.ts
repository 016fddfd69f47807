import type { Metrics } from "../lib/metrics.ts";
import type { CountedCall } from "./pod-resources.ts";

/** Resources whose registrations are counted: a plugin may ask for ever new ones. */
const MOST_RESOURCES = 500;

/** The callbacks that count what device plugins do. */
export function deviceMetrics(metrics: Metrics): {
  registered(resource: string): void;
  allocated(resource: string, seconds: number): void;
} {
  const registrations = metrics.counter(
    "kubelet_device_plugin_registration_total",
    "Cumulative number of device plugin registrations. Broken down by resource name.",
    ["resource_name"],
  );
  const allocations = metrics.histogram(
    "kubelet_device_plugin_alloc_duration_seconds",
    "Duration in seconds to serve a device plugin Allocation request. Broken down by resource name.",
    ["resource_name"],
  );
  const counted = new Set<string>();
  return {
    registered(resource) {
      if (!counted.has(resource) && counted.size >= MOST_RESOURCES) return;
      counted.add(resource);
      registrations.inc([resource]);
    },
    allocated: (resource, seconds) => allocations.observe(seconds, [resource]),
  };
}

/** The callback that counts calls of the pod resources API. */
export function podResourcesMetrics(metrics: Metrics): (call: CountedCall, version: "v1" | "v1alpha1") => void {
  const counter = (name: string, what: string) =>
    metrics.counter(`kubelet_pod_resources_endpoint_${name}`, `${what} Broken down by server api version.`, [
      "server_api_version",
    ]);
  const total = counter("requests_total", "Cumulative number of requests to the PodResource endpoint.");
  const calls = {
    list: counter("requests_list", "Number of requests to the PodResource List endpoint."),
    get: counter("requests_get", "Number of requests to the PodResource Get endpoint."),
    getAllocatable: counter(
      "requests_get_allocatable",
      "Number of requests to the PodResource GetAllocatableResources endpoint.",
    ),
    getError: counter("errors_get", "Number of requests to the PodResource Get endpoint which returned error."),
  };
  return (call, version) => {
    if (call !== "getError") total.inc([version]);
    // v1alpha1 has one call, which is only part of the total, as in Kubernetes.
    if (version === "v1") calls[call].inc([version]);
  };
}
