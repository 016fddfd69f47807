import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { agentChecks, stalledReason } from "./agent-checks.ts";

const MINUTE = 60_000;

function agent() {
  const clock = new FakeClock();
  const state: {
    stuck?: { name: string; ageMs: number };
    lag?: string;
    endedAt: number;
    plugins?: string;
    listed?: { wall: number; mono: number };
    syncFrequency: number;
  } = { endedAt: 0, syncFrequency: MINUTE };
  const deps = {
    clock,
    syncFrequency: () => state.syncFrequency,
    listedAt: () => state.listed,
    calls: {
      get endedAt() {
        return state.endedAt;
      },
      stuck: () => state.stuck,
    },
    lag: { problem: () => state.lag },
    registrationTrouble: () => state.plugins,
  };
  const problem = (name: string) =>
    agentChecks(deps)
      .find((check) => check.name === name)
      ?.problem();
  return { clock, state, problem, stalled: () => stalledReason(deps) };
}

describe("the health of the agent", () => {
  test("a call to the runtime that is stuck has its name and age there", () => {
    const { state, problem } = agent();
    assert.equal(problem("runtime-calls"), undefined);
    state.stuck = { name: "run_podsandbox", ageMs: 75_400 };
    assert.equal(problem("runtime-calls"), "run_podsandbox has been running for 75 s");
  });

  test("a runtime that was not listed for five minutes is there, or for twice the sync frequency if that is more", async () => {
    const { clock, state, problem } = agent();
    await clock.advance(10 * MINUTE);
    assert.equal(problem("syncloop"), undefined, "before the first list");
    state.listed = { wall: Date.UTC(2026, 0, 2), mono: clock.now().mono };
    await clock.advance(5 * MINUTE);
    assert.equal(problem("syncloop"), undefined);
    await clock.advance(1);
    const words = "pods of the runtime were last listed at 2026-01-02T00:00:00.000Z, 300 s ago";
    assert.equal(problem("syncloop"), words);
    state.syncFrequency = 3 * MINUTE;
    assert.equal(problem("syncloop"), undefined);
  });

  test("a socket that device plugins cannot register on is there, in the words of Kubernetes", () => {
    const { state, problem } = agent();
    assert.equal(problem("device-plugin"), undefined);
    state.plugins = "listen EACCES";
    const words = "device plugin registration gRPC server failed and no device plugins can register: listen EACCES";
    assert.equal(problem("device-plugin"), `device registration error: ${words}`);
  });

  test("an event loop that is late is there", () => {
    const { state, problem } = agent();
    state.lag = "late";
    assert.equal(problem("event-loop"), "late");
  });
});

describe("progress", () => {
  test("is made as long as calls to the runtime end", async () => {
    const { clock, state, stalled } = agent();
    await clock.advance(5 * MINUTE);
    assert.equal(stalled(), undefined);
    await clock.advance(1);
    assert.equal(stalled(), "no call to the runtime has ended for 300 s");
    state.endedAt = clock.now().mono;
    assert.equal(stalled(), undefined);
  });

  test("is not made by an event loop that is late for long", () => {
    const { state, stalled } = agent();
    state.lag = "the event loop is 2.0 s late";
    assert.equal(stalled(), state.lag);
  });
});
