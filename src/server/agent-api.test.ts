import assert from "node:assert/strict";
import { test } from "node:test";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import { agentApi } from "./agent-api.ts";
import type { ServerDeps } from "./compose.ts";

function api(argv: readonly string[], metrics = new Metrics()) {
  const { values, problems } = parseAgentOptions(argv);
  assert.deepEqual(problems, []);
  const store = new OptionStore(agentOptions, values);
  // Reason: only the configuration and the metrics are asked for here.
  return agentApi({ clock: new FakeClock(), store, metrics } as unknown as ServerDeps, []);
}

test("/configz and /flagz mask the headers of the manifest URL", () => {
  const { about } = api(["--manifest-url=http://x/", "--manifest-url-header=Authorization:hunter2"]);
  const shown = JSON.stringify([about.configuration(), about.flags()]);
  assert.match(shown, /staticPodURL/);
  assert.doesNotMatch(shown, /hunter2/);
});

test("/flagz has every flag with its value, in order, but --help", () => {
  const flags = api(["--manifest-url=http://x/", "-v=3"]).about.flags();
  assert.deepEqual([flags["manifest-url"], flags["v"], Object.hasOwn(flags, "help")], ["http://x/", "3", false]);
  assert.deepEqual(Object.keys(flags), Object.keys(flags).sort());
});

test("/metrics and /metrics/probes share the metrics by name", async () => {
  const metrics = new Metrics();
  metrics.counter("prober_probe_total", "Number of probes.").inc();
  metrics.counter("kubelet_other_total", "Others.").inc();
  const { agent, probes } = api([], metrics).metrics;
  assert.equal(
    await probes(),
    "# HELP prober_probe_total [BETA] Number of probes.\n# TYPE prober_probe_total counter\nprober_probe_total 1\n",
  );
  assert.doesNotMatch(await agent(), /prober/);
  assert.match(await agent(), /^kubelet_other_total 1$/m);
});
