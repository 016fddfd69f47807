import assert from "node:assert/strict";
import { test } from "node:test";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { refreshCgroups } from "./index.ts";

test("limits are set at the start, each minute, and at once when reservations change", async () => {
  const clock = new FakeClock();
  const { values } = parseAgentOptions([]);
  const store = new OptionStore(agentOptions, values);
  const stop = new AbortController();
  let count = 0;
  const cgroups = {
    refresh: async () => {
      count++;
    },
  };
  const running = refreshCgroups(cgroups, { clock, store }, stop.signal);
  await clock.advance(59_999);
  assert.equal(count, 1);
  await clock.advance(1);
  assert.equal(count, 2);
  store.update({ ...values, kubeReserved: { memory: "1Gi" } }, { reload: true });
  await clock.advance(0);
  assert.equal(count, 3);
  store.update({ ...values, kubeReserved: { memory: "1Gi" }, maxPods: 7 }, { reload: true });
  await clock.advance(0);
  assert.equal(count, 3, "other settings do not count");
  stop.abort();
  await running;
});
