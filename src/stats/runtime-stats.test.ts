import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeError, type RuntimeStatsPort } from "../adapters/runtime/port.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { RuntimeStats } from "./runtime-stats.ts";

const { signal } = new AbortController();
const usage = { cpu: { usageNanos: 5 } };

function site(port: Partial<RuntimeStatsPort>) {
  const clock = new FakeClock();
  const whole: RuntimeStatsPort = {
    usages: async () => [{ id: "c1", usage }],
    metrics: async () => ({ families: [], samples: [] }),
    ...port,
  };
  return { clock, stats: new RuntimeStats({ clock, log: silent, port: whole }) };
}

test("usages go by the id of their container", async () => {
  assert.deepEqual((await site({}).stats.usages({ signal }))?.get("c1")?.usage, usage);
});

test("a runtime that cannot tell, or hangs, leaves it to cgroups", async () => {
  const lacking = site({ usages: () => Promise.reject(new RuntimeError("Unimplemented", "no")) });
  assert.equal(await lacking.stats.usages({ signal }), undefined);
  const hanging = site({
    metrics: ({ signal: limited }) =>
      new Promise((_, reject) => limited.addEventListener("abort", () => reject(limited.reason))),
  });
  const asked = hanging.stats.metrics({ signal });
  await hanging.clock.advance(2000);
  assert.equal(await asked, undefined);
});
