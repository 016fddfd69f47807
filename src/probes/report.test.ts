import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../lib/metrics.ts";
import { probeHooks } from "./report.ts";

test("the series of a pod's probes end with the pod, and no others", async () => {
  const metrics = new Metrics();
  const journal = { of: () => ({ note: () => undefined, event: () => undefined }) };
  const hooks = probeHooks({ journal, metrics, changed: () => undefined });
  const run = (name: string, result: "success" | "failure") =>
    hooks.ran({
      pod: { uid: `uid-of-${name}`, name, namespace: "default" },
      container: "app",
      ...({ kind: "readiness", result, output: "", tookMs: 1 } as const),
    });
  for (const name of ["one", "two"]) for (const result of ["success", "failure", "success"] as const) run(name, result);
  const series = async (): Promise<string[]> =>
    (await metrics.expose()).body
      .split("\n")
      .filter((line) => /^prober_probe_(total|duration_seconds_count)\{/.test(line));
  assert.equal((await series()).length, 6);
  const labels = 'probe_type="Readiness",container="app",pod="one",namespace="default"';
  assert.ok((await series()).includes(`prober_probe_duration_seconds_count{${labels}} 2`), "of successes only");
  hooks.forgotten({ uid: "uid-of-one", name: "one", namespace: "default" });
  const left = await series();
  assert.equal(left.length, 3);
  assert.ok(left.every((line) => line.includes('pod="two"')));
});
