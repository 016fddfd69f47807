import assert from "node:assert/strict";
import { test } from "node:test";
import { requestLabels } from "./request-metrics.ts";

const cases = [
  { request: "GET /pods?limit=1", want: ["GET", "pods", "false"] },
  { request: "GET /metrics", want: ["GET", "metrics", "false"] },
  { request: "GET /metrics/cadvisor", want: ["GET", "metrics/cadvisor", "false"] },
  { request: "GET /metrics/slis", want: ["GET", "other", "false"] },
  { request: "GET /metrics/nothing", want: ["GET", "other", "false"] },
  { request: "GET /favicon.ico", want: ["GET", "other", "false"] },
  { request: "POST /exec/default/web/main", want: ["POST", "exec", "true"] },
  { request: "POST /portForward/default/web", want: ["POST", "portForward", "false"] },
  { request: "TRACE /pods", want: ["TRACE", "pods", "false"] },
  { request: "PATCH /pods", want: ["other", "pods", "false"] },
] as const;
for (const { request, want } of cases) {
  test(`a request has the labels of Kubernetes: ${request}`, () => {
    const [method, target = ""] = request.split(" ");
    const [sent, path, longRunning] = want;
    assert.deepEqual(requestLabels(method ?? "", target, "readonly"), [sent, path, "readonly", longRunning]);
  });
}
