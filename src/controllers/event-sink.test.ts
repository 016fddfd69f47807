import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { testApiServer } from "../../test/support/local-api.ts";
import { EVENTS, PODS } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { EventSink } from "./event-sink.ts";

test("a sink that waited often holds as little as one that never did", async (t) => {
  const clock = new FakeClock();
  const server = await testApiServer(clock);
  const api = server.api("test");
  const stop = manyListeners();
  const sink = new EventSink({ api, clock, log: silent, random: () => 0 });
  const record = sink.recorder("test");
  const running = sink.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await server.close();
  });
  const object = { metadata: { name: "p", namespace: "default", uid: "u" } };
  await clock.advance(0);
  const before = getEventListeners(stop.signal, "abort").length;
  for (let round = 0; round < 20; round++) {
    record({ type: "Normal", reason: "R", message: "again", resource: PODS, object });
    await clock.advance(0);
  }
  const { items } = await api.list(EVENTS, { namespace: "default" }, { signal: stop.signal });
  assert.deepEqual(
    items.map(({ count }) => count),
    [20],
  );
  assert.equal(getEventListeners(stop.signal, "abort").length, before);
});
