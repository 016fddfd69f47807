import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { type BodySink, bareRequest, type PushedBody } from "../../adapters/net/http-route.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";

const ADMIN = { name: "admin", groups: ["system:masters"] };
const MAPS = "/api/v1/namespaces/default/configmaps";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

/** What a connection got, and how it behaves. */
class Client implements BodySink {
  readonly pieces: Uint8Array[] = [];
  state: "open" | "ended" | "failed" = "open";
  isReading = true;
  failure: unknown;

  write(bytes: Uint8Array): boolean {
    if (this.failure !== undefined) throw this.failure;
    this.pieces.push(bytes);
    return this.isReading;
  }

  end(): void {
    this.state = "ended";
  }

  fail(): void {
    this.state = "failed";
  }

  get events(): { type: string; object: { metadata: { name?: string }; rows?: { cells: unknown[] }[] } }[] {
    const lines = Buffer.concat(this.pieces).toString().split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
  }

  get names(): (string | undefined)[] {
    return this.events.map(({ object }) => object.metadata.name);
  }
}

async function bench(t: TestContext) {
  const clock = new FakeClock();
  const server = await testApiServer(clock);
  t.after(() => server.close());
  const ask = (method: string, path: string, more: Parameters<typeof bareRequest>[2] = {}) =>
    server.handle(bareRequest(method, path, more), ADMIN);
  const create = async (name: string, data = "") => {
    const body = Buffer.from(JSON.stringify({ metadata: { name }, data: { data } }));
    assert.equal((await ask("POST", MAPS, { readBody: async () => body })).status, 201);
  };
  const watch = async (
    client: Client,
    { accept = "application/json", query = "", signal = manyListeners().signal } = {},
  ) => {
    const { body } = await ask("GET", `${MAPS}?watch=1${query}`, { headers: { accept }, signal });
    assert.ok(typeof body === "object" && "sendTo" in body);
    return (body as PushedBody).sendTo(client);
  };
  /** From now on. */
  const query = async (): Promise<string> => {
    const { metadata } = JSON.parse(String((await ask("GET", `${MAPS}?limit=1`)).body)) as {
      metadata: { resourceVersion: string };
    };
    return `&resourceVersion=${metadata.resourceVersion}`;
  };
  return { clock, create, watch, query };
}

test("an event has been sent to every watch when its write is answered, as the same bytes", async (t) => {
  const { create, watch, query } = await bench(t);
  const clients = Array.from({ length: 3 }, () => new Client());
  for (const client of clients) await watch(client, { query: await query() });
  await create("a");
  const [first] = clients;
  assert.deepEqual(first?.names, ["a"]);
  for (const { pieces } of clients) assert.equal(pieces[0], first?.pieces[0]);
});

test("a client that does not read gets what it missed when it reads again", async (t) => {
  const { create, watch, query } = await bench(t);
  const client = new Client();
  const source = await watch(client, { query: await query() });
  client.isReading = false;
  for (const name of ["a", "b", "c"]) await create(name);
  assert.deepEqual(client.names, ["a"]);
  client.isReading = true;
  source.resume();
  assert.deepEqual(client.names, ["a", "b", "c"]);
  await create("d");
  assert.deepEqual(client.names, ["a", "b", "c", "d"]);
});

test("a beginning that is long is sent in chunks, and what happens meanwhile comes after it", async (t) => {
  const { create, watch } = await bench(t);
  const names = Array.from({ length: 9 }, (_, index) => `n${index}`);
  for (const name of names) await create(name, "x".repeat(20_000));
  const client = new Client();
  await watch(client);
  assert.ok(client.names.length < names.length);
  await create("later");
  while (!client.names.includes("later")) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(client.names.slice(-10), [...names, "later"]);
  assert.ok(client.pieces.every(({ length }) => length <= 64 * 1024));
});

test("what happens before the last chunk of a long batch is sent after it, without another event", async (t) => {
  const { create, watch, query } = await bench(t);
  const client = new Client();
  const source = await watch(client, { query: await query() });
  client.isReading = false;
  for (const name of ["n0", "n1", "n2", "n3"]) await create(name, "x".repeat(40_000));
  client.isReading = true;
  source.resume();
  assert.deepEqual(client.names, ["n0", "n1"], "the batch is cut");
  await create("later");
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(client.names, ["n0", "n1", "n2", "n3", "later"]);
});

test("a client that missed too much gets no bookmark beyond what it missed", async (t) => {
  const { clock, create, watch, query } = await bench(t);
  const client = new Client();
  const source = await watch(client, { query: `${await query()}&allowWatchBookmarks=true&timeoutSeconds=3600` });
  client.isReading = false;
  for (let index = 0; index < 12; index++) await create(`n${index}`, "x".repeat(900_000));
  await clock.advance(120_000);
  client.isReading = true;
  while (client.state === "open") {
    source.resume();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const types = client.events.map(({ type }) => type);
  assert.ok(types.length < 12, "some were dropped");
  assert.ok(!types.includes("BOOKMARK"));
});

test("a watch that is over ends its answer", async (t) => {
  const { clock, watch } = await bench(t);
  const client = new Client();
  await watch(client, { query: "&timeoutSeconds=5" });
  await clock.advance(5000);
  while (client.state === "open") await new Promise((resolve) => setImmediate(resolve));
  assert.equal(client.state, "ended");
});

test("a watch that cannot be sent fails alone: the write and the other watches do not", async (t) => {
  const { create, watch, query } = await bench(t);
  const [broken, good] = [new Client(), new Client()];
  for (const client of [broken, good]) await watch(client, { query: await query() });
  broken.failure = new Error("broken");
  await create("a");
  assert.equal(broken.state, "failed");
  assert.deepEqual(good.names, ["a"]);
});

test("a client that left gets nothing more", async (t) => {
  const { create, watch, query } = await bench(t);
  const leaving = manyListeners();
  const [stopped, aborted] = [new Client(), new Client()];
  const source = await watch(stopped, { query: await query() });
  await watch(aborted, { query: await query(), signal: leaving.signal });
  source.stop();
  leaving.abort();
  await create("a");
  assert.deepEqual([...stopped.pieces, ...aborted.pieces], []);
});

test("ages in the tables of a watch are those of the event, not of the beginning", async (t) => {
  const { clock, create, watch, query } = await bench(t);
  const clients = [new Client(), new Client()];
  for (const client of clients) await watch(client, { accept: TABLE, query: await query() });
  await clock.advance(600_000);
  await create("a");
  for (const client of clients) assert.deepEqual(client.events[0]?.object.rows?.[0]?.cells, ["a", 1, "0s"]);
  assert.equal(clients[0]?.pieces[0], clients[1]?.pieces[0]);
});
