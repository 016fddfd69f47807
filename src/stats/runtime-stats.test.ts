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
  const warnings: unknown[] = [];
  const log = { ...silent, warn: (_message: string, fields?: object) => void warnings.push(fields) };
  const whole: RuntimeStatsPort = {
    usages: async () => [{ id: "c1", usage }],
    metrics: async () => ({ families: [], samples: [] }),
    ...port,
  };
  return { clock, warnings, stats: new RuntimeStats({ clock, log, port: whole }) };
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

test("a failure is warned of once, and again after an answer", async () => {
  let isWell = false;
  const usages = async () => {
    if (isWell) return [];
    throw new Error("down");
  };
  const { stats, warnings } = site({ usages });
  for (let at = 0; at < 3; at++) await stats.usages({ signal });
  assert.deepEqual(warnings, [{ error: "down" }]);
  isWell = true;
  await stats.usages({ signal });
  isWell = false;
  await stats.usages({ signal });
  assert.equal(warnings.length, 2);
});

test("whoever stops asking gets no answer, and no warning is made of it", async () => {
  const stop = new AbortController();
  const { stats, warnings } = site({
    usages: ({ signal: limited }) =>
      new Promise((_, reject) => limited.addEventListener("abort", () => reject(limited.reason))),
  });
  const asked = stats.usages({ signal: stop.signal });
  stop.abort(new Error("stopped"));
  await assert.rejects(asked, /stopped/);
  assert.deepEqual(warnings, []);
});
