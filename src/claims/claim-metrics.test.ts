import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../lib/metrics.ts";
import { claimMetrics } from "./claim-metrics.ts";

const cases = [
  { name: "that succeeded", error: undefined, want: "OK" },
  { name: "that failed", error: "DeadlineExceeded", want: "DeadlineExceeded" },
] as const;
for (const { name, error, want } of cases) {
  test(`a call of a driver ${name} is counted by its status code`, async () => {
    const metrics = new Metrics();
    const path = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources";
    claimMetrics(metrics, () => []).called("gpu.example.com", { path, tookMs: 10, ...(error && { error }) });
    const labels = `driver_name="gpu.example.com",method_name="${path}",grpc_status_code="${want}"`;
    assert.ok((await metrics.expose()).body.includes(`dra_grpc_operations_duration_seconds_count{${labels}} 1`));
  });
}
