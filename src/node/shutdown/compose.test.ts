import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { agentOptions, OptionStore, parseAgentOptions } from "../../config/index.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { Metrics } from "../../lib/metrics.ts";
import { composeShutdown } from "./compose.ts";

/** The metrics of an agent that finds this state of a shutdown. */
async function pageOf(t: TestContext, state: string | undefined): Promise<string> {
  const rootDir = mkdtempSync(join(tmpdir(), "shutdown-"));
  t.after(() => rmSync(rootDir, { recursive: true }));
  if (state !== undefined) writeFileSync(join(rootDir, "graceful_node_shutdown_state"), state);
  const metrics = new Metrics();
  composeShutdown({
    clock: new FakeClock(),
    log: silent,
    metrics,
    store: new OptionStore(agentOptions, parseAgentOptions([`--root-dir=${rootDir}`]).values),
    pool: {
      uids: () => [],
      worker: () => undefined,
      isFinished: () => true,
      isInRuntime: () => false,
      onStatus: () => undefined,
    },
    desired: { allSourcesReady: true, list: () => [] },
    listedAt: () => ({}),
    shutdown: new LiveValue(false),
    event: () => undefined,
  });
  return (await metrics.expose()).body;
}

const START = "2026-01-01T00:00:00Z";
const SECONDS = Date.parse(START) / 1000;

test("the times of the last shutdown are metrics after a restart, in seconds", async (t) => {
  const ended = await pageOf(t, JSON.stringify({ startTime: START, endTime: "2026-01-01T00:00:30.5Z" }));
  assert.match(ended, new RegExp(`^kubelet_graceful_shutdown_start_time_seconds ${SECONDS}$`, "m"));
  assert.match(ended, new RegExp(`^kubelet_graceful_shutdown_end_time_seconds ${SECONDS + 30}$`, "m"));
});

test("a shutdown that was not finished has no end, and one that nobody knows of no start", async (t) => {
  const open = await pageOf(t, JSON.stringify({ startTime: START, endTime: "0001-01-01T00:00:00Z" }));
  assert.match(open, new RegExp(`^kubelet_graceful_shutdown_start_time_seconds ${SECONDS}$`, "m"));
  assert.match(open, /^kubelet_graceful_shutdown_end_time_seconds 0$/m);
  for (const state of [undefined, "{", '{"startTime":7}'])
    assert.doesNotMatch(await pageOf(t, state), /^kubelet_graceful_shutdown_start_time_seconds [1-9]/m, state);
});
