/** The alert rules and the dashboard of examples/monitoring: well formed, tested, and about metrics that there are. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { CONTAINER_COLUMNS } from "../src/stats/cadvisor-columns.ts";
import { fullName, KUBELET_METRICS } from "./support/metric-names.ts";
import { promtool, whyNoPromtool } from "./support/promtool.ts";

const folder = join(import.meta.dirname, "../examples/monitoring");
const text = (name: string): string => readFileSync(join(folder, name), "utf8");

/** Metrics of the pages that have no table to read them from. */
const OTHERS = [
  ...["node_cpu_usage_seconds_total", "node_memory_working_set_bytes", "machine_cpu_cores", "machine_memory_bytes"],
  ...["prober_probe_total", "kubernetes_healthcheck"],
];

describe("examples/monitoring", () => {
  test("the rules are rules, and alert when they should", { skip: whyNoPromtool() ?? false }, () => {
    assert.equal(promtool("check", "rules", join(folder, "alerts.yaml")), undefined);
    assert.equal(promtool("test", "rules", join(folder, "alerts-test.yaml")), undefined);
  });

  test("rules and dashboard ask for metrics that this agent has", () => {
    const always = [...KUBELET_METRICS].filter(([, rule]) => rule === "always").map(([name]) => fullName(name));
    const known = new Set([...CONTAINER_COLUMNS.map(({ name }) => name), ...always, ...OTHERS]);
    const dashboard = JSON.parse(text("dashboard.json")) as { panels: { targets?: { expr: string }[] }[] };
    const panels = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    assert.ok(panels.length > 15);
    const asked = [text("alerts.yaml"), ...panels].join("\n");
    const names = asked.match(/\b(?:container|node|machine|kubelet|kubernetes|prober|process)_[a-z0-9_]+/g) ?? [];
    const labels = new Set(["container_state"]);
    const missing = names.map((name) => name.replace(/_bucket$/, "")).filter((name) => !known.has(name));
    assert.deepEqual(
      [...new Set(missing)].filter((name) => !labels.has(name)),
      [],
    );
  });
});
