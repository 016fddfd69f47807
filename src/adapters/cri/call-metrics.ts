import type { Metrics } from "../../lib/metrics.ts";

/** One call that ended: its full path, how long it took, and what went wrong. */
export interface EndedCall {
  readonly path: string;
  readonly tookMs: number;
  readonly error?: unknown;
}

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

/** Declares `kubelet_runtime_operations_*`; the answer is told of each call. For all connections of one agent together. */
export function runtimeCallMetrics(metrics: Metrics): (call: EndedCall) => void {
  const labels = ["operation_type"];
  const total = metrics.counter("kubelet_runtime_operations_total", "Calls to the runtime.", labels);
  const errors = metrics.counter(
    "kubelet_runtime_operations_errors_total",
    "Calls to the runtime that failed.",
    labels,
  );
  const duration = metrics.histogram("kubelet_runtime_operations_duration_seconds", "How long calls took.", {
    ...{ labels, buckets: BUCKETS },
  });
  const names = new Map<string, readonly [string] | undefined>();
  return ({ path, tookMs, error }) => {
    if (!names.has(path)) {
      const name = operationOf(path);
      names.set(path, name === undefined ? undefined : [name]);
    }
    const name = names.get(path);
    if (name === undefined) return;
    total.inc(name);
    duration.observe(tookMs / 1000, name);
    if (error !== undefined) errors.inc(name);
  };
}
