import type { EndedCall } from "../adapters/grpc/channel.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { ClaimRecord } from "./claim-record.ts";

/** From 0.1 s to 40 s in 15 steps, to the last digit as Kubernetes computes them: a call may take 45 s. */
const BUCKETS = [
  ...[0.1, 0.1534127404634391, 0.23535468936502524, 0.36106407876409946, 0.5539182980610752],
  ...[0.849781240983936, 1.303672689737678, 1.9999999999999993, 3.0682548092687805, 4.7070937873005025],
  ...[7.221281575281985, 11.078365961221499, 16.995624819678714, 26.07345379475354, 39.99999999999997],
];

/** Declares the metrics of dynamic resource allocation by Kubernetes' names; returns the callbacks. */
export function claimMetrics(
  metrics: Metrics,
  claims: () => readonly ClaimRecord[],
): {
  measured(operation: string, tookMs: number, isError: boolean): void;
  called(driver: string, call: EndedCall): void;
} {
  const operations = metrics.histogram(
    "dra_operations_duration_seconds",
    "Duration of preparing or unpreparing all ResourceClaims of a pod, by operation and outcome.",
    { labels: ["operation_name", "is_error"], buckets: BUCKETS },
  );
  const calls = metrics.histogram(
    "dra_grpc_operations_duration_seconds",
    "Duration in seconds of the gRPC calls to drivers for dynamic resource allocation.",
    { labels: ["driver_name", "method_name", "grpc_status_code"], buckets: BUCKETS },
  );
  metrics.gaugeFrom(
    "dra_resource_claims_in_use",
    "Number of ResourceClaims that are prepared on this node, by driver; <any> counts each claim once.",
    { labels: ["driver_name"], values: () => inUse(claims()) },
  );
  return {
    measured: (operation, tookMs, isError) => operations.observe(tookMs / 1000, [operation, String(isError)]),
    called: (driver, { path, tookMs, error }) => calls.observe(tookMs / 1000, [driver, path, error ?? "OK"]),
  };
}

function inUse(claims: readonly ClaimRecord[]): [[string], number][] {
  const prepared = claims.filter(({ isPrepared }) => isPrepared);
  const counts = new Map<string, number>([["<any>", prepared.length]]);
  for (const { drivers } of prepared) {
    for (const driver of drivers.keys()) counts.set(driver, (counts.get(driver) ?? 0) + 1);
  }
  return [...counts].map(([driver, count]) => [[driver], count]);
}
