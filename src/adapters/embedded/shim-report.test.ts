import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { ShimAudit } from "./orphaned-shims.ts";
import type { ProcessInfo } from "./processes.ts";
import { shimReport } from "./shim-report.ts";

const SOCKET = "/run/containerd/containerd.sock";
const argv = ["containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "lost", "-address", SOCKET];
const shim: ProcessInfo = { pid: 7, parent: 1, startTime: 1, argv };

test("an orphaned shim of a containerd that is not the agent's own is logged once", async () => {
  const clock = new FakeClock();
  const logged: unknown[] = [];
  const audit = new ShimAudit(SOCKET, { list: () => [shim], directoryOf: () => "/bundle", isOnHost: () => true });
  const stop = new AbortController();
  const log = { warn: (message: string, fields: unknown) => void logged.push([message, fields]) };
  const loop = shimReport({ runtime: { listSandboxes: async () => [] }, clock, log, audit }, `unix://${SOCKET}`);
  const running = loop.run(stop.signal).catch(() => undefined);
  await clock.advance(600_000);
  assert.deepEqual(logged, []);
  for (let round = 0; round < 5; round++) await clock.advance(600_000);
  assert.deepEqual(logged, [["Found orphaned shim, which containerd lost track of", { pid: 7, sandboxID: "lost" }]]);
  stop.abort();
  await running;
});
