import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { CriServer } from "../../../test/support/cri-server.ts";
import { FakeClock } from "../../lib/clock.ts";
import { fixed } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { CriRuntime } from "./cri-runtime.ts";
import { runtimeService as rpc } from "./methods.ts";

const never = { signal: new AbortController().signal };
const RUNS = 'failed to set removing state for container "c": container is still running, to stop first';

async function serving(
  t: TestContext,
  add: (server: CriServer) => CriServer,
): Promise<{ runtime: CriRuntime; clock: FakeClock }> {
  const server = await add(new CriServer()).start();
  const clock = new FakeClock();
  const runtime = new CriRuntime({ clock, log: silent }, { endpoint: server.socket, requestTimeoutMs: fixed(20_000) });
  t.after(async () => {
    runtime.close();
    await server.stop();
  });
  return { runtime, clock };
}

/** Lets time go on until the call has ended. */
async function ended(clock: FakeClock, call: Promise<void>): Promise<void> {
  let isOver = false;
  call.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  while (!isOver) await clock.advance(clock.nextIn === 50 ? 50 : 0);
  return call;
}

const SHIM_LEFT = "failed to kill container: ttrpc: closed: unknown";

const cases = [
  { name: "is tried again until the runtime has noticed its end", refusals: 3, words: RUNS, calls: 4 },
  { name: "whose shim just left is tried again", refusals: 1, words: SHIM_LEFT, calls: 2 },
  { name: "that is said to run for ever is given up", refusals: Infinity, words: RUNS, calls: 100, fails: true },
  { name: "that is refused for another reason is not tried again", refusals: 1, words: "no", calls: 1, fails: true },
];
for (const { name, refusals, words, calls, fails = false } of cases) {
  test(`the removal of a container ${name}`, async (t) => {
    let count = 0;
    const { runtime, clock } = await serving(t, (server) =>
      server.unary(rpc.removeContainer, (_call, callback) => {
        if (++count > refusals) callback(null, {});
        else callback({ code: status.UNKNOWN, details: words });
      }),
    );
    const removal = ended(clock, runtime.removeContainer("c", never));
    if (fails) await assert.rejects(removal, { message: words });
    else await removal;
    assert.equal(count, calls);
  });
}

for (const { words, calls, fails } of [
  { words: SHIM_LEFT, calls: 2, fails: false },
  { words: "no", calls: 1, fails: true },
]) {
  test(`the stop of a container that answers "${words}" first`, async (t) => {
    let count = 0;
    const { runtime, clock } = await serving(t, (server) =>
      server.unary(rpc.stopContainer, (_call, callback) => {
        if (++count > 1) callback(null, {});
        else callback({ code: status.UNKNOWN, details: words });
      }),
    );
    const stop = ended(clock, runtime.stopContainer("c", 1, never));
    if (fails) await assert.rejects(stop, { message: words });
    else await stop;
    assert.equal(count, calls);
  });
}
