import assert from "node:assert/strict";
import { test } from "node:test";
import { SliMetrics } from "./sli-metrics.ts";

test("each result of a health check is counted, and the page itself counts nothing", () => {
  const problems: string[] = [];
  const slis = new SliMetrics([{ name: "syncloop", problem: () => problems[0] }]);
  const [check] = slis.counted();
  check?.problem();
  check?.problem();
  problems.push("stuck");
  assert.equal(check?.problem(), "stuck");
  slis.page();
  const lines = slis.page().split("\n");
  assert.deepEqual(
    lines.filter((line) => line.startsWith("kubernetes_")),
    [
      'kubernetes_healthcheck{name="syncloop",type="healthz"} 0',
      'kubernetes_healthchecks_total{name="syncloop",type="healthz",status="success"} 2',
      'kubernetes_healthchecks_total{name="syncloop",type="healthz",status="error"} 1',
    ],
  );
  assert.match(slis.page(), /^process_start_time_seconds \d{10}/m);
  slis.reset();
  assert.doesNotMatch(slis.page(), /^kubernetes_healthchecks_total\{/m);
});
