import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Node } from "../model/generated/types.ts";
import { startupMetrics } from "./startup-metrics.ts";

test("each part of the way to a node that is Ready is measured once", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const { wall } = clock.now();
  const startup = startupMetrics(metrics, clock, { booted: wall - 30_000, started: wall });
  const lines = async (): Promise<string[]> =>
    (await metrics.expose()).body.split("\n").filter((line) => line.startsWith("kubelet_"));
  const name = "kubelet_node_startup_";
  assert.deepEqual(await lines(), [
    `${name}duration_seconds 0`,
    `${name}pre_kubelet_duration_seconds 30`,
    `${name}pre_registration_duration_seconds 0`,
    `${name}registration_duration_seconds 0`,
    `${name}post_registration_duration_seconds 0`,
  ]);
  let tell: (node: Node) => void = () => undefined;
  startup.follow(
    {
      onNode: (fn) => {
        tell = fn;
      },
    },
    new AbortController(),
  );
  const node = (status: string): Node => ({
    metadata: {},
    spec: {},
    status: { conditions: [{ type: "Ready", status }] },
  });
  await clock.advance(1000);
  startup.registering();
  await clock.advance(2000);
  tell(node("False"));
  await clock.advance(4000);
  tell(node("True"));
  await clock.advance(9000);
  tell(node("True"));
  assert.deepEqual(await lines(), [
    `${name}duration_seconds 37`,
    `${name}pre_kubelet_duration_seconds 30`,
    `${name}pre_registration_duration_seconds 1`,
    `${name}registration_duration_seconds 2`,
    `${name}post_registration_duration_seconds 4`,
  ]);
});
