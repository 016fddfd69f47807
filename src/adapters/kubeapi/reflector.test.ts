import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { until } from "../../../test/contract/kubeapi-suite.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ApiError } from "./port.ts";
import { Reflector } from "./reflector.ts";
import { PODS } from "./resources.ts";

const place = { collection: "v1/pods", namespace: "default", name: "" };

/** A reflector of all pods on a scripted server; `log` has every change as a word. */
class Scene {
  readonly clock = new FakeClock();
  readonly log: string[] = [];
  readonly errors: ApiError[] = [];
  readonly reflector: Reflector<Pod>;
  private readonly controller = new AbortController();

  private constructor(
    readonly server: FakeApiServer,
    pageSize: number,
  ) {
    const clients = testClients(this.clock, clientConfig([server.url], server.authorityPem));
    this.reflector = new Reflector<Pod>(
      { api: clients.calls, clock: this.clock, random: () => 0 },
      {
        resource: PODS,
        select: {},
        firstList: "cached",
        pageSize,
        onChange: ({ kind, object }) => this.log.push(`${kind} ${object.metadata.name} ${object.metadata.uid}`),
        onSync: () => this.log.push("synced"),
        onError: (error) => this.errors.push(error),
      },
    );
    this.stop = async () => {
      this.controller.abort();
      await running;
      clients.close();
      await server.stop();
    };
    const running = this.reflector.run(this.controller);
  }

  readonly stop: () => Promise<void>;

  static async start(t: TestContext, { pods = 0, pageSize = 500 } = {}): Promise<Scene> {
    const server = await FakeApiServer.start();
    for (let n = 1; n <= pods; n++) server.objects.create(place, { metadata: { name: `p${n}` } });
    const scene = new Scene(server, pageSize);
    t.after(() => scene.stop());
    return scene;
  }

  create(name: string): void {
    this.server.objects.create(place, { metadata: { name } });
  }

  update(name: string): void {
    const at = { ...place, name };
    this.server.objects.replace(at, { ...this.server.objects.get(at), spec: {} }, "");
  }

  remove(name: string): void {
    this.server.objects.delete({ ...place, name }, {});
  }

  private watchesBefore = 0;

  /** Waits until one more watch stands; time goes on only when everybody waits for it. */
  async watching(): Promise<void> {
    for (let turn = 0; this.server.acceptedWatches <= this.watchesBefore; turn++) {
      assert.ok(turn < 2000, "no watch");
      for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve));
      const next = this.clock.nextIn;
      if (turn % 10 === 9 && next !== undefined && next <= 11_000) await this.clock.advance(next);
    }
    this.watchesBefore = this.server.acceptedWatches;
  }

  get names(): string[] {
    return [...this.reflector.objects.keys()].sort();
  }

  count(method: (path: URLSearchParams) => boolean): number {
    return this.server.requests.filter(({ query }) => method(query)).length;
  }

  get lists(): number {
    return this.count((query) => query.get("watch") === null);
  }
}

test("pages are put together and told once", async (t) => {
  const scene = await Scene.start(t, { pods: 5, pageSize: 2 });
  await scene.watching();
  assert.deepEqual(scene.names, ["default/p1", "default/p2", "default/p3", "default/p4", "default/p5"]);
  assert.equal(scene.lists, 3);
  assert.equal(scene.log.filter((line) => line.startsWith("added")).length, 5);
  assert.equal(scene.log.at(-1), "synced");
  assert.ok([...scene.reflector.objects.values()].every(({ metadata }) => metadata.managedFields === undefined));
});

test("a cut loses nothing and tells nothing twice, and does not list again", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  scene.create("p2");
  await until("p2", () => scene.names.length === 2);
  scene.server.cutAll();
  scene.create("p3");
  scene.remove("p1");
  await scene.watching();
  await until("p3", () => scene.names.includes("default/p3") && scene.names.length === 2);
  assert.equal(scene.lists, 1);
  assert.deepEqual(scene.log, ["added p1 uid-1", "synced", "added p2 uid-2", "added p3 uid-3", "deleted p1 uid-1"]);
  assert.equal(scene.errors[0]?.code, "Unavailable");
});

test("410: what happened meanwhile is told as differences, a replaced name as two", async (t) => {
  const scene = await Scene.start(t, { pods: 3 });
  await scene.watching();
  await scene.server.stop();
  scene.remove("p1");
  scene.remove("p2");
  scene.create("p2");
  scene.update("p3");
  scene.create("p4");
  scene.server.objects.compact();
  await scene.server.listen();
  await scene.watching();
  await until("the second list", () => scene.lists === 2 && scene.log.filter((line) => line === "synced").length === 2);
  assert.deepEqual(scene.log.slice(4), [
    "deleted p2 uid-2",
    "deleted p1 uid-1",
    "updated p3 uid-3",
    "added p2 uid-4",
    "added p4 uid-5",
    "synced",
  ]);
  assert.ok(scene.errors.some(({ code }) => code === "Gone"));
});

test("410 as an event in the watch lists again, too", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  const status = { kind: "Status", code: 410, reason: "Expired", message: "too old resource version" };
  scene.server.tellWatches(`${JSON.stringify({ type: "ERROR", object: status })}\n`);
  await until("the error", () => scene.errors.length === 1);
  await scene.watching();
  await until("the second list", () => scene.lists === 2);
  assert.deepEqual(scene.log, ["added p1 uid-1", "synced", "synced"]);
});

test("a bookmark moves the version on, so that a compaction needs no list", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  scene.server.objects.compact();
  scene.server.bookmark();
  scene.create("p2");
  await until("p2", () => scene.names.length === 2);
  scene.server.cutAll();
  await scene.watching();
  assert.equal(scene.lists, 1);
});

test("an unreadable line costs nothing: the watch begins again behind the last good one", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  for (const garbage of [
    '{"type":"ADDED","object":{"met\n',
    "\u0000\u0001\n",
    '{"type":"ADDED","object":{"metadata":{}}}\n',
    '"x"\n',
  ]) {
    const before = scene.errors.length;
    scene.create(`p-${before}`);
    await until("the good one", () => scene.names.includes(`default/p-${before}`));
    scene.server.tellWatches(garbage);
    await until("the error", () => scene.errors.length === before + 1);
    assert.equal(scene.errors.at(-1)?.code, "Garbage");
    await scene.watching();
  }
  scene.create("last");
  await until("the last", () => scene.names.includes("default/last"));
  assert.equal(scene.lists, 1);
  assert.equal(new Set(scene.log).size, scene.log.length, "nothing is told twice");
});

test("a version at which garbage comes again and again is stepped over by a list", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  for (let n = 1; n <= 2; n++) {
    scene.server.tellWatches("garbage\n");
    await until("the error", () => scene.errors.length === n);
    await scene.watching();
  }
  assert.equal(scene.lists, 2);
  assert.deepEqual(scene.log, ["added p1 uid-1", "synced", "synced"]);
});

test("a list that cannot be read or is refused is asked for again, with growing pauses", async (t) => {
  const server = await FakeApiServer.start();
  server.script(() => true, { kind: "answer", status: 403 }, 2);
  server.script(() => true, { kind: "answer", status: 200, body: '{"items": [{"metadata": {}}]}' });
  server.script(() => true, {
    kind: "answer",
    status: 200,
    body: '{"items": [], "metadata": {"resourceVersion": ""}}',
  });
  const clock = new FakeClock();
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem));
  const errors: string[] = [];
  const reflector = new Reflector<Pod>(
    { api: clients.calls, clock, random: () => 0 },
    { resource: PODS, select: {}, firstList: "latest", onError: ({ code }) => errors.push(code) },
  );
  const controller = new AbortController();
  const running = reflector.run(controller);
  t.after(async () => {
    controller.abort();
    await running;
    clients.close();
    await server.stop();
  });
  for (const [index, pause] of [100, 200, 400, 800].entries()) {
    await until(`failure ${index + 1}`, () => errors.length === index + 1 && clock.nextIn === pause);
    await clock.advance(pause);
  }
  await until("synced", () => reflector.hasSynced);
  assert.deepEqual(errors, ["Forbidden", "Forbidden", "Garbage", "Garbage"]);
  assert.equal(server.requests[0]?.query.get("resourceVersion"), null);
});

test("later lists are never older than what was seen, unless the server has forgotten that", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  const versions = (): (string | null)[] =>
    scene.server.requests
      .filter(({ query }) => query.get("watch") === null)
      .map(({ query }) => query.get("resourceVersion"));
  scene.server.script(({ query }) => query.get("watch") === "true", { kind: "answer", status: 410 });
  scene.server.script(({ query }) => query.get("watch") === null, { kind: "answer", status: 504 });
  scene.server.endWatches();
  await scene.watching();
  await until("three lists", () => versions().length === 3);
  assert.deepEqual(versions(), ["0", "101", null]);
});

test("a watch that the server ends is begun again; one that ends at once is not hammered", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  const watches = (): number => scene.count((query) => query.get("watch") === "true");
  await scene.clock.advance(2000);
  scene.server.endWatches();
  await until("the second watch", () => watches() === 2 && scene.server.openWatches === 1);
  scene.server.endWatches();
  await until("a pause", () => scene.server.openWatches === 0 && scene.clock.nextIn === 100);
  assert.equal(watches(), 2);
});

test("a watch that does not end in time is ended", async (t) => {
  const scene = await Scene.start(t, { pods: 1 });
  await scene.watching();
  for (let step = 0; step < 22; step++) {
    await scene.clock.advance(15_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  await until("the time limit", () => scene.errors.length === 1);
  assert.equal(scene.errors[0]?.code, "Timeout");
  await scene.watching();
  assert.equal(scene.lists, 1);
});
