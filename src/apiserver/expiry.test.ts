import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../test/support/local-api.ts";
import { CONFIG_MAPS, EVENTS } from "../adapters/kubeapi/index.ts";
import { LogError, type LogWrite, MemoryLog } from "../adapters/objectlog/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import type { Event } from "../model/generated/types.ts";

const namespace = "default";
const MINUTE = 60_000;
const at = (minute: number): string =>
  new Date(Date.UTC(2026, 0, 1) + minute * MINUTE).toISOString().slice(0, 19) + "Z";

async function bench(t: TestContext, log = new MemoryLog()) {
  const clock = new FakeClock();
  const server = await testApiServer(clock, { log });
  const stop = manyListeners();
  const loops = server.loops.map(({ run }) => run(stop.signal));
  t.after(async () => {
    stop.abort();
    await Promise.all(loops);
    await server.close();
  });
  const api = server.api("user");
  const options = { signal: manyListeners().signal };
  const add = (name: string, times: Partial<Event> = {}) => {
    const involvedObject = { kind: "Pod", name: "p", namespace };
    const object = { metadata: { name, namespace }, involvedObject, reason: "R", ...times };
    return api.create(EVENTS, { namespace, object }, options);
  };
  const names = async () => (await api.list(EVENTS, { namespace }, options)).items.map(({ metadata }) => metadata.name);
  return { clock, api, options, add, names };
}

test("an event goes an hour after it was made, and nothing else does", async (t) => {
  const { clock, api, options, add, names } = await bench(t);
  await api.create(CONFIG_MAPS, { namespace, object: { metadata: { name: "kept" } } }, options);
  await add("e");
  await clock.advance(60 * MINUTE);
  assert.deepEqual(await names(), ["e"]);
  await clock.advance(MINUTE);
  assert.deepEqual(await names(), []);
  assert.ok(await api.get(CONFIG_MAPS, { namespace, name: "kept" }, options));
});

test("a disk that is full ends nothing, and what has expired goes when there is room again", async (t) => {
  const log = new MemoryLog();
  const { clock, add, names } = await bench(t, log);
  await add("e");
  log.failure = new LogError("NoSpace", "write objects.log: no space left on device");
  await clock.advance(65 * MINUTE);
  assert.deepEqual(await names(), ["e"]);
  log.failure = undefined;
  await clock.advance(MINUTE);
  assert.deepEqual(await names(), []);
});

test("the newest of an event's times counts, wherever it stands", async (t) => {
  const { clock, add, names } = await bench(t);
  await add("created");
  await add("first", { firstTimestamp: at(10) });
  await add("last", { firstTimestamp: at(0), lastTimestamp: at(20) });
  await add("new", { eventTime: `${at(30).slice(0, -1)}.000000Z`, reportingComponent: "c", action: "A" });
  await add("series", { series: { count: 2, lastObservedTime: `${at(40).slice(0, -1)}.000000Z` } });
  for (const left of [5, 4, 3, 2, 1]) {
    assert.equal((await names()).length, left);
    await clock.advance(left === 5 ? 61 * MINUTE : 10 * MINUTE);
  }
  assert.deepEqual(await names(), []);
});

test("an event that is repeated stays for another hour", async (t) => {
  const { clock, api, options, add, names } = await bench(t);
  await add("e", { lastTimestamp: at(0) });
  await clock.advance(50 * MINUTE);
  const body = { lastTimestamp: at(50), count: 2 };
  await api.patch(EVENTS, { namespace, name: "e", type: "merge", body }, options);
  await clock.advance(50 * MINUTE);
  assert.deepEqual(await names(), ["e"]);
  await clock.advance(11 * MINUTE);
  assert.deepEqual(await names(), []);
});

/** A disk on which a write takes until it is let go on. */
class SlowLog extends MemoryLog {
  wait: Promise<void> | undefined;

  override async append(writes: readonly LogWrite[]): Promise<void> {
    await this.wait;
    await super.append(writes);
  }
}

test("an event that is repeated while it expires stays", async (t) => {
  const log = new SlowLog();
  const { clock, api, options, add, names } = await bench(t, log);
  await add("e");
  await add("other");
  await clock.advance(59.5 * MINUTE);
  let goOn = (): void => undefined;
  log.wait = new Promise((resolve) => {
    goOn = resolve;
  });
  const body = { lastTimestamp: at(59), count: 2 };
  const repeated = api.patch(EVENTS, { namespace, name: "e", type: "merge", body }, options);
  await clock.advance(2 * MINUTE);
  goOn();
  await repeated;
  await clock.advance(0);
  assert.deepEqual(await names(), ["e"]);
});
