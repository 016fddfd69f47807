import assert from "node:assert/strict";
import { test } from "node:test";
import { probeLines } from "./probe-lines.ts";

test("probes in words, by container and kind", () => {
  const container = {
    name: "web",
    startupProbe: { tcpSocket: { port: 80 } },
    livenessProbe: { httpGet: { port: "http", path: "/healthz" }, periodSeconds: 5, failureThreshold: 1 },
    readinessProbe: { exec: { command: ["test", "-e", "/ready"] } },
  };
  const other = { name: "db", livenessProbe: { grpc: { port: 9000, service: "db" } } };
  const lines = probeLines({ metadata: {}, spec: { containers: [container, other] } }, []);
  assert.deepEqual(
    lines.map(({ container: of, kind, check, periodSeconds, failureThreshold }) => [
      ...[of, kind, check, periodSeconds, failureThreshold],
    ]),
    [
      ["web", "startup", "TCP :80", 10, 3],
      ["web", "liveness", "HTTP GET :http/healthz", 5, 1],
      ["web", "readiness", "exec test -e /ready", 10, 3],
      ["db", "liveness", "gRPC :9000 db", 10, 3],
    ],
  );
});

test("a probe has its last run; one that is not run yet has only its rules", () => {
  const probe = { exec: { command: ["true"] }, timeoutSeconds: 7, successThreshold: 2 };
  const spec = { containers: [{ name: "web", livenessProbe: probe, readinessProbe: probe }] };
  const last = { outcome: "failure", at: 5, tookMs: 1, message: "no" } as const;
  const streak = { of: "failure", count: 2 } as const;
  const report = { container: "web", kind: "readiness", result: "failure", last, streak, nextAt: 9 } as const;
  const other = { ...report, container: "other", result: "success" } as const;
  const rules = {
    container: "web",
    check: "exec true",
    periodSeconds: 10,
    timeoutSeconds: 7,
    successThreshold: 2,
    failureThreshold: 3,
  };
  assert.deepEqual(probeLines({ metadata: {}, spec }, [other, report]), [
    { ...rules, kind: "liveness" },
    { ...rules, ...report },
  ]);
});
