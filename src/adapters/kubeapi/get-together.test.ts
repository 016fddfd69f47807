import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { type FakeApiOptions, FakeApiServer, type Fault } from "../../../test/contract/kubeapi-fake-server.ts";
import { until } from "../../../test/contract/kubeapi-suite.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { KubeClients } from "./clients.ts";
import { CONFIG_MAPS } from "./resources.ts";

const never = { signal: manyListeners().signal };
const NAMES = ["a", "b", "c", "d"];

interface Scene {
  readonly server: FakeApiServer;
  readonly clients: KubeClients;
  readonly clock: FakeClock;
  /** The names of what was read together, and `-` for each that has to be read by `get`. */
  read(names?: readonly string[], options?: { readonly signal: AbortSignal }): Promise<readonly string[]>;
}

/** A server of the ConfigMaps a, b, c and d. */
async function scene(t: TestContext, options: FakeApiOptions = {}): Promise<Scene> {
  const server = await FakeApiServer.start(options);
  const clock = new FakeClock({ wall: Date.now(), mono: 0 });
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem));
  t.after(async () => {
    clients.close();
    await server.stop();
  });
  for (const name of NAMES) {
    server.objects.create({ collection: "v1/configmaps", namespace: "default", name }, { metadata: { name } });
  }
  const read: Scene["read"] = async (names = NAMES, call = never) => {
    const refs = names.map((name) => ({ namespace: "default", name }));
    const found = (await clients.calls.getTogether?.(CONFIG_MAPS, refs, call)) ?? [];
    return found.map((object) => object?.metadata.name ?? "-");
  };
  return { server, clients, clock, read };
}

describe("objects that are read together", () => {
  test("come in their order, each by a request of its own, on the connection of other calls", async (t) => {
    const { server, clients, read } = await scene(t);
    assert.deepEqual(await read(), NAMES);
    await clients.calls.get(CONFIG_MAPS, { namespace: "default", name: "a" }, never);
    assert.deepEqual([server.requests.length, server.requests.at(-1)?.connection], [5, 1]);
    assert.equal(server.requests[0]?.headers["accept"], "application/json");
  });

  test("are counted as requests", async (t) => {
    const { clients, read } = await scene(t);
    const codes: string[] = [];
    clients.onAnswer(({ code, method }) => codes.push(`${method} ${code}`));
    await read(["a", "missing"]);
    assert.deepEqual(codes, ["GET 200", "GET 404"]);
  });

  const faults: [string, Fault][] = [
    ["is refused", { kind: "answer", status: 403 }],
    ["the server has no time for", { kind: "answer", status: 429, headers: { "retry-after": "1" } }],
  ];
  for (const [name, fault] of faults) {
    test(`one that ${name} is left to be read alone, the others are there`, async (t) => {
      const { server, read } = await scene(t);
      server.script(({ path }) => path.endsWith("/b"), fault);
      assert.deepEqual(await read(), ["a", "-", "c", "d"]);
    });
  }

  test("one that does not exist is left to be read alone", async (t) => {
    assert.deepEqual(await (await scene(t)).read(["a", "none", "c"]), ["a", "-", "c"]);
  });

  test("half an answer is none", async (t) => {
    const { server, read } = await scene(t);
    server.script(({ path }) => path.endsWith("/d"), { kind: "half", body: '{"metadata":' });
    assert.equal((await read()).at(-1), "-");
  });

  test("an answer that is no object is none", async (t) => {
    const { server, read } = await scene(t);
    server.script(({ path }) => path.endsWith("/b"), { kind: "answer", status: 200, body: "<html>" });
    assert.equal((await read()).at(1), "-");
  });

  test("one without an answer keeps the others for ten seconds, and is ended then", async (t) => {
    const { server, clock, read } = await scene(t);
    server.script(({ path }) => path.endsWith("/b"), { kind: "never" });
    const found = read();
    await until("all were asked for", () => server.requests.length === NAMES.length);
    await until("the others are there", () => clock.waiting > 0);
    for (let round = 0; round < 20; round++) await clock.advance(0);
    await clock.advance(10_000);
    assert.equal((await found).at(1), "-");
  });

  test("a server that is away leaves all of them", async (t) => {
    const { server, read } = await scene(t);
    await server.stop();
    assert.deepEqual(await read(), ["-", "-", "-", "-"]);
  });

  test("an abort rejects with its reason", async (t) => {
    const { server, read } = await scene(t);
    server.script(() => true, { kind: "never" }, 4);
    const stop = new AbortController();
    const found = read(NAMES, stop);
    await until("all were asked for", () => server.requests.length === NAMES.length);
    stop.abort(new Error("enough"));
    await assert.rejects(found, /enough/);
  });

  test("what the connection has no room for is left", async (t) => {
    const { server, read } = await scene(t, { maxConcurrentStreams: 4 });
    assert.deepEqual(await read(), ["a", "b", "-", "-"]);
    assert.equal(server.requests.length, 2);
  });
});
