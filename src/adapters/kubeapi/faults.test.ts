import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { type FakeApiOptions, FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { until } from "../../../test/contract/kubeapi-suite.ts";
import { TcpProxy } from "../../../test/support/tcp-proxy.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { ConfigMap } from "../../model/generated/types.ts";
import type { Identity } from "./client-config.ts";
import type { KubeClients } from "./clients.ts";
import { ApiError, type WatchEvent } from "./port.ts";
import { CONFIG_MAPS, LEASES } from "./resources.ts";

const never = { signal: manyListeners().signal };
const at = { namespace: "default", name: "one" };
const one = { namespace: "default", object: { metadata: { name: "one" } } };

interface Scene {
  readonly server: FakeApiServer;
  readonly clients: KubeClients;
  readonly clock: FakeClock;
}

async function scene(
  t: TestContext,
  options: FakeApiOptions & { identity?: Identity; through?: TcpProxy } = {},
): Promise<Scene> {
  const server = await FakeApiServer.start(options);
  const clock = new FakeClock({ wall: Date.now(), mono: 0 });
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem, options.identity));
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  return { server, clients, clock };
}

const calls = (server: FakeApiServer, method: string): number =>
  server.requests.filter((seen) => seen.method === method).length;

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => assert.fail("it should have failed"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

/** Reads a watch into a list until it ends. */
function collect(events: AsyncIterable<WatchEvent<ConfigMap>>): {
  seen: WatchEvent<ConfigMap>[];
  end: Promise<unknown>;
} {
  const seen: WatchEvent<ConfigMap>[] = [];
  const end = (async () => {
    for await (const event of events) seen.push(event);
    return "end";
  })().catch((error: unknown) => error);
  return { seen, end };
}

const watchAll = (clients: KubeClients, resourceVersion = "100"): Promise<AsyncIterable<WatchEvent<ConfigMap>>> =>
  clients.calls.watch(CONFIG_MAPS, { namespace: "default", resourceVersion, timeoutSeconds: 300 }, never);

test("429 with Retry-After is waited for", async (t) => {
  const { server, clients, clock } = await scene(t);
  server.objects.create({ collection: "v1/configmaps", namespace: "default", name: "one" }, one.object);
  server.script(() => true, { kind: "answer", status: 429, headers: { "retry-after": "2" } }, 2);
  const answer = clients.calls.get(CONFIG_MAPS, at, never);
  for (const n of [1, 2]) {
    await until(`request ${n} was answered`, () => server.requests.length === n && clock.nextIn === 2000);
    await clock.advance(2000);
  }
  assert.equal((await answer).metadata.name, "one");
});

test("a Retry-After that does not fit into the time limit is an error at once, with its time", async (t) => {
  const { server, clients } = await scene(t);
  server.script(() => true, { kind: "answer", status: 503, headers: { "retry-after": "60" } });
  const error = await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(error.code, "Unavailable");
  assert.equal(error.retryAfterMs, 60_000);
  assert.equal(server.requests.length, 1);
});

for (const { status, body, code, message } of [
  { status: 500, body: "it broke", code: "Unavailable", message: "HTTP 500: it broke" },
  { status: 504, body: "", code: "Timeout", message: "HTTP 504" },
  { status: 418, body: "", code: "Unknown", message: "HTTP 418" },
  { status: 200, body: "<html>", code: "Garbage", message: "ConfigMap: response is not valid JSON" },
  { status: 200, body: "[]", code: "Garbage", message: "ConfigMap: response is not an object" },
]) {
  test(`status ${status} with ${JSON.stringify(body)} is ${code}`, async (t) => {
    const { server, clients } = await scene(t);
    server.script(() => true, { kind: "answer", status, body });
    const error = await failure(clients.calls.get(CONFIG_MAPS, at, never));
    assert.equal(error.code, code);
    assert.equal(error.message, message);
  });
}

test("a call without an answer ends by its time limit, and the next one takes another connection", async (t) => {
  const { server, clients, clock } = await scene(t);
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  await clock.advance(100);
  server.script(() => true, { kind: "never" });
  const silent = failure(clients.calls.get(CONFIG_MAPS, at, { ...never, timeoutMs: 5000 }));
  await until("the request is there", () => server.requests.length === 2);
  await clock.advance(5000);
  const error = await silent;
  assert.equal(error.code, "Timeout");
  assert.equal(error.message, "timed out: no response within 5 s");
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.deepEqual(
    server.requests.map(({ connection }) => connection),
    [1, 1, 2],
  );
});

test("an aborted call rejects with the reason and leaves the connection in use", async (t) => {
  const { server, clients } = await scene(t);
  server.script(() => true, { kind: "never" });
  const controller = new AbortController();
  const call = clients.calls.get(CONFIG_MAPS, at, controller);
  await until("the request is there", () => server.requests.length === 1);
  const reason = new Error("enough");
  controller.abort(reason);
  await assert.rejects(call, reason);
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(server.connections, 1);
});

test("a read is repeated after a cut, a write is not", async (t) => {
  const { server, clients } = await scene(t);
  server.script(({ method }) => method === "GET", { kind: "cut" });
  assert.equal((await failure(clients.calls.get(CONFIG_MAPS, at, never))).code, "NotFound");
  assert.equal(calls(server, "GET"), 2);
  server.script(({ method }) => method === "POST", { kind: "cut" });
  assert.equal((await failure(clients.calls.create(CONFIG_MAPS, one, never))).code, "Unavailable");
  assert.equal(calls(server, "POST"), 1);
  await clients.calls.create(CONFIG_MAPS, one, never);
});

for (const http1 of [false, true]) {
  test(`half an answer is no answer (${http1 ? "HTTP/1.1" : "HTTP/2"})`, async (t) => {
    const { server, clients } = await scene(t, { http1 });
    server.script(() => true, { kind: "half", body: '{"metadata": {"name": "one"}}' }, 9);
    const error = await failure(clients.calls.get(CONFIG_MAPS, at, never));
    assert.equal(error.code, "Unavailable", error.message);
    assert.equal(server.requests.at(-1)?.httpVersion, http1 ? "1.1" : "2.0");
  });

  test(`a watch that is cut between two events is no watch that ended (${http1 ? "HTTP/1.1" : "HTTP/2"})`, async (t) => {
    const { server, clients } = await scene(t, { http1 });
    const watch = collect(await watchAll(clients));
    await clients.calls.create(CONFIG_MAPS, one, never);
    await until("the watch tells", () => watch.seen.length === 1);
    server.cutAll();
    const outcome = await watch.end;
    assert.ok(outcome instanceof ApiError, String(outcome));
    assert.equal(outcome.code, "Unavailable");
  });
}

test("a watch that the server ends has ended", async (t) => {
  const { server, clients } = await scene(t);
  const watch = collect(await watchAll(clients));
  server.endWatches();
  assert.equal(await watch.end, "end");
});

test("a server that is away is Unavailable, and found again when it is back", async (t) => {
  const { server, clients } = await scene(t);
  await server.stop();
  const error = await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(error.code, "Unavailable");
  assert.match(error.message, /^connect to API server: https:\/\/127\.0\.0\.1:\d+: connect ECONNREFUSED/);
  await server.listen();
  assert.equal((await failure(clients.calls.get(CONFIG_MAPS, at, never))).code, "NotFound");
});

test("GOAWAY(0): the watch goes on, new calls go to a new connection", async (t) => {
  const { server, clients } = await scene(t);
  const watch = collect(await watchAll(clients));
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(server.connections, 2);
  server.goaway(0);
  await until("calls moved", () => server.connections === 2);
  await new Promise((resolve) => setImmediate(resolve));
  await clients.calls.create(CONFIG_MAPS, one, never);
  assert.ok(server.connections >= 3);
  await until("the old watch still tells", () => watch.seen.length === 1);
  assert.equal(server.openWatches, 1);
});

test("a connection that went silent is found by ping after 30 s and given up 15 s later", async (t) => {
  const server = await FakeApiServer.start();
  const proxy = await TcpProxy.start(server.port);
  const clock = new FakeClock();
  const clients = testClients(clock, clientConfig([proxy.url], server.authorityPem));
  t.after(async () => {
    clients.close();
    await proxy.stop();
    await server.stop();
  });
  const watch = collect(await watchAll(clients));
  let isOver = false;
  void watch.end.then(() => {
    isOver = true;
  });
  proxy.freeze();
  for (let step = 0; step < 4 && !isOver; step++) await clock.advance(14_900);
  assert.ok(!isOver, "not given up before the ping's time is over");
  await clock.advance(15_000);
  const outcome = await watch.end;
  assert.ok(outcome instanceof ApiError, String(outcome));
  assert.equal(outcome.code, "Unavailable");
});

test("a call that gets no answer has watches checked, too: they need not be silent for long", async (t) => {
  const server = await FakeApiServer.start();
  const proxy = await TcpProxy.start(server.port);
  const clock = new FakeClock();
  const clients = testClients(clock, clientConfig([proxy.url], server.authorityPem));
  t.after(async () => {
    clients.close();
    await proxy.stop();
    await server.stop();
  });
  const watch = collect(await watchAll(clients));
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  proxy.freeze();
  const call = failure(clients.calls.get(CONFIG_MAPS, at, { ...never, timeoutMs: 5000 }));
  await until("the call's time limit runs", () => clock.nextIn === 5000);
  await clock.advance(5000);
  assert.equal((await call).code, "Timeout");
  await clock.advance(15_000);
  const outcome = await watch.end;
  assert.ok(outcome instanceof ApiError, String(outcome));
  assert.equal(outcome.code, "Unavailable");
});

test("a live but quiet connection answers pings and stays", async (t) => {
  const { server, clients, clock } = await scene(t);
  const watch = collect(await watchAll(clients));
  for (let minute = 0; minute < 20; minute++) {
    await clock.advance(15_000);
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  await clients.calls.create(CONFIG_MAPS, one, never);
  await until("the watch tells", () => watch.seen.length === 1);
  assert.equal(server.connections, 2);
});

test("watches fill connections up to the server's limit and never stand in the way of calls", async (t) => {
  const { server, clients } = await scene(t, { maxConcurrentStreams: 20 });
  const watches = await Promise.all(Array.from({ length: 60 }, () => watchAll(clients)));
  const all = watches.map(collect);
  await clients.calls.create(CONFIG_MAPS, one, never);
  await until("each watch told it", () => all.every(({ seen }) => seen.length === 1));
  const onWatches = new Map<number, number>();
  for (const { query, connection } of server.requests) {
    if (query.get("watch") === "true") onWatches.set(connection, (onWatches.get(connection) ?? 0) + 1);
  }
  assert.deepEqual([...onWatches.values()], [15, 15, 15, 15]);
  const lease = { namespace: "kube-node-lease", object: { metadata: { name: "node" }, spec: {} } };
  await clients.heartbeat.create(LEASES, lease, never);
  assert.ok(!onWatches.has(server.requests.at(-1)?.connection ?? 0));
});

test("more calls at once than the server allows are all answered", async (t) => {
  const { server, clients } = await scene(t, { maxConcurrentStreams: 10 });
  await Promise.all(Array.from({ length: 40 }, () => failure(clients.calls.get(CONFIG_MAPS, at, never))));
  assert.equal(server.requests.length, 40);
});

test("a new client certificate means a new connection; the old watch goes on", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "kts-cert-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, "current.pem");
  writeFileSync(file, "");
  const material = { kind: "file", path: file } as const;
  const { server, clients, clock } = await scene(t, { identity: { certificate: material, key: material } });
  const missing = await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(missing.code, "Unauthorized");
  const put = (name: string): void => {
    const pair = server.clientPair(name);
    writeFileSync(file, pair.certificate + pair.key);
  };
  put("first");
  await clock.advance(1000);
  const watch = collect(await watchAll(clients));
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(server.requests.at(-1)?.client, "first");
  put("second-longer");
  await clock.advance(10_000);
  await clients.calls.create(CONFIG_MAPS, one, never);
  assert.equal(server.requests.at(-1)?.client, "second-longer");
  await until("the old watch tells", () => watch.seen.length === 1);
  writeFileSync(file, "half of a cert");
  await clock.advance(10_000);
  await clients.calls.get(CONFIG_MAPS, at, never);
  assert.equal(server.requests.at(-1)?.client, "second-longer");
});

test("a refused token is read again from its file, once", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "kts-token-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const tokenFile = join(dir, "token");
  writeFileSync(tokenFile, "old\n");
  const { server, clients } = await scene(t, { identity: { tokenFile } });
  server.script(({ headers }) => headers.authorization === "Bearer old", { kind: "answer", status: 401 }, 99);
  await failure(clients.calls.get(CONFIG_MAPS, at, never));
  assert.equal(server.requests.length, 2);
  writeFileSync(tokenFile, "new\n");
  assert.equal((await failure(clients.calls.get(CONFIG_MAPS, at, never))).code, "NotFound");
  assert.deepEqual(
    server.requests.slice(2).map(({ headers }) => headers.authorization),
    ["Bearer old", "Bearer new"],
  );
});

test("the next server is asked when one is away, and when it only makes errors", async (t) => {
  const first = await FakeApiServer.start();
  const second = await FakeApiServer.start();
  const clock = new FakeClock();
  const config = clientConfig([first.url, second.url], first.authorityPem + second.authorityPem);
  const clients = testClients(clock, config);
  t.after(async () => {
    clients.close();
    await first.stop();
    await second.stop();
  });
  const get = (): Promise<ApiError> => failure(clients.calls.get(CONFIG_MAPS, at, never));
  await get();
  await first.stop();
  await get();
  assert.deepEqual([first.requests.length, second.requests.length], [1, 1]);
  await first.listen();
  await get();
  assert.deepEqual([first.requests.length, second.requests.length], [1, 2]);
  second.script(() => true, { kind: "answer", status: 500 }, 99);
  for (let n = 0; n < 3; n++) assert.equal((await get()).httpStatus, 500);
  assert.equal((await get()).code, "NotFound");
  assert.deepEqual([first.requests.length, second.requests.length], [2, 5]);
});

test("calls beyond the rate wait, heartbeats do not", async (t) => {
  const server = await FakeApiServer.start();
  const clock = new FakeClock();
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem), { qps: 10, burst: 2 });
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  const burst = Promise.all([1, 2, 3].map(() => failure(clients.calls.get(CONFIG_MAPS, at, never))));
  await until("the burst is sent", () => server.requests.length === 2);
  await failure(clients.heartbeat.get(CONFIG_MAPS, at, never));
  assert.equal(server.requests.length, 3);
  await clock.advance(100);
  await burst;
  assert.equal(server.requests.length, 4);
});

test("events wait for a rate of their own, and never use up that of the calls", async (t) => {
  const server = await FakeApiServer.start();
  const clock = new FakeClock();
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem), { qps: 10, burst: 2 });
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  const events = Promise.all([1, 2, 3].map(() => failure(clients.events.get(CONFIG_MAPS, at, never))));
  await until("the burst of events is sent", () => server.requests.length === 2);
  await Promise.all([1, 2].map(() => failure(clients.calls.get(CONFIG_MAPS, at, never))));
  assert.equal(server.requests.length, 4);
  await clock.advance(100);
  await events;
  assert.equal(server.requests.length, 5);
});

test("a server of another authority is refused, unless the check is off", async (t) => {
  const { server } = await scene(t);
  const other = await FakeApiServer.start();
  t.after(() => other.stop());
  const strict = testClients(new FakeClock(), clientConfig([server.url], other.authorityPem));
  const loose = testClients(new FakeClock(), {
    ...clientConfig([server.url], ""),
    authority: undefined,
    isInsecure: true,
  });
  t.after(() => {
    strict.close();
    loose.close();
  });
  assert.match((await failure(strict.calls.get(CONFIG_MAPS, at, never))).message, /certificate|authority|signature/i);
  assert.equal((await failure(loose.calls.get(CONFIG_MAPS, at, never))).code, "NotFound");
});
