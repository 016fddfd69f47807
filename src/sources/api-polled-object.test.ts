import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import type { ConfigMap, Pod } from "../model/generated/types.ts";
import { ApiObjects } from "./api-objects.ts";
import type { PollTimes } from "./api-polled-object.ts";

const CACHE: PollTimes = { freshMs: 60_000, everyMs: 60_000 };
const GET: PollTimes = { freshMs: 0, everyMs: 60_000 };
const REF = { kind: "ConfigMap", namespace: "ns", name: "a" } as const;

/** A server of one ConfigMap that counts how often it is asked. */
function site(times: PollTimes) {
  const clock = new FakeClock();
  const stop = manyListeners();
  const server = { asked: 0, object: undefined as ConfigMap | undefined, failure: undefined as ApiError | undefined };
  const api = {
    get: async () => {
      server.asked++;
      await Promise.resolve();
      if (server.failure !== undefined) throw server.failure;
      if (server.object === undefined) throw new ApiError("NotFound", "none");
      return server.object;
    },
    list: () => Promise.reject(new Error("nothing may be listed")),
    watch: () => Promise.reject(new Error("nothing may be watched")),
  };
  const source = new ApiObjects({ api: api as never, clock, poll: () => times }, stop.signal);
  const read = async (): Promise<string | undefined> => (await source.get(REF, stop))?.data?.["k"];
  const put = (k: string, more: object = {}): void => {
    server.object = { metadata: { name: "a", namespace: "ns", uid: "u", resourceVersion: k }, data: { k }, ...more };
  };
  return { clock, stop, server, source, read, put };
}

const user = (labels: Record<string, string> = {}): Pod => ({
  metadata: { name: "p", namespace: "ns", uid: "p", labels },
  spec: { containers: [], volumes: [{ name: "v", configMap: { name: "a" } }] },
});

test("Get: every read asks the server, and readers at one moment share the question", async () => {
  const { server, read, put } = site(GET);
  put("1");
  assert.deepEqual(await Promise.all([read(), read()]), ["1", "1"]);
  assert.equal(server.asked, 1);
  put("2");
  assert.equal(await read(), "2");
});

test("Cache: what was read is good for a while, and asked for anew when a pod that uses it has changed", async () => {
  const { clock, server, source, read, put } = site(CACHE);
  source.wanted([user()]);
  put("1");
  await read();
  put("2");
  await clock.advance(59_000);
  assert.equal(await read(), "1");
  source.wanted([user({ changed: "yes" })]);
  assert.equal(await read(), "2");
  put("3");
  await clock.advance(61_000);
  assert.equal(await read(), "3");
  assert.equal(server.asked, 3);
});

test("an object that is missing is missing, also from the cache", async () => {
  const { server, read } = site(CACHE);
  assert.deepEqual([await read(), await read()], [undefined, undefined]);
  assert.equal(server.asked, 1);
});

test("whoever listens hears of a change, and of nothing else; nobody is asked when nobody listens", async () => {
  const { clock, server, source, read, put } = site(GET);
  const volume = manyListeners();
  put("1");
  await read();
  let told = 0;
  source.onChange(REF, () => told++, volume);
  await clock.advance(60_000);
  assert.deepEqual([server.asked, told], [2, 0]);
  put("2");
  await clock.advance(60_000);
  assert.deepEqual([server.asked, told], [3, 1]);
  volume.abort();
  await clock.advance(600_000);
  assert.equal(server.asked, 3);
});

test("an immutable object is asked for once", async () => {
  const { clock, server, source, read, put, stop } = site(GET);
  put("1", { immutable: true });
  source.onChange(REF, () => undefined, stop);
  await read();
  await clock.advance(600_000);
  assert.equal(await read(), "1");
  assert.equal(server.asked, 1);
});

test("a server that is away: what is known is given out; a refusal is told", async () => {
  const { server, read, put } = site(GET);
  put("1");
  await read();
  server.failure = new ApiError("Unavailable", "away");
  assert.equal(await read(), "1");
  server.failure = new ApiError("Forbidden", "no");
  await assert.rejects(read(), /no/);
});

test("an object that no pod refers to is not asked for any more", async () => {
  const { clock, server, source, read, put, stop } = site(GET);
  source.wanted([user()]);
  put("1");
  await read();
  source.onChange(REF, () => undefined, stop);
  source.wanted([]);
  await clock.advance(600_000);
  assert.equal(server.asked, 1);
});
