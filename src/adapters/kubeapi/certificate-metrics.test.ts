import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { Metrics } from "../../lib/metrics.ts";
import { declareCertificateMetrics, rotationMetrics } from "./certificate-metrics.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("a certificate counts down, and is for ever as long as there is none", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const facts = { failures: 2, expiresAt: clock.now().wall + 90_000 };
  declareCertificateMetrics(metrics, clock, { kind: "client", facts: () => facts });
  declareCertificateMetrics(metrics, clock, { kind: "server", facts: () => ({ failures: 0 }) });
  await clock.advance(30_000);
  assert.deepEqual(await linesOf(metrics, /^kubelet/), [
    "kubelet_certificate_manager_client_ttl_seconds 60",
    "kubelet_certificate_manager_client_expiration_renew_errors 2",
    "kubelet_certificate_manager_server_ttl_seconds +Inf",
    "kubelet_server_expiration_renew_errors 0",
  ]);
});

test("a serving certificate's life is measured when the next one comes", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const used = rotationMetrics(metrics, clock);
  used({ notBefore: clock.now().wall });
  await clock.advance(3_600_000);
  used({ notBefore: clock.now().wall });
  assert.deepEqual(await linesOf(metrics, /_sum/), ["kubelet_certificate_manager_server_rotation_seconds_sum 3600"]);
});
