import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type KubeApi, Reflector } from "../../src/adapters/kubeapi/index.ts";
import { CONFIG_MAPS, LEASES } from "../../src/adapters/kubeapi/resources.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { FakeClock, SystemClock } from "../../src/lib/clock.ts";
import type { ConfigMap } from "../../src/model/generated/types.ts";
import { testClients } from "../contract/kubeapi-clients.ts";
import { until } from "../contract/kubeapi-suite.ts";
import { skipWithoutControlPlane, TestControlPlane } from "../support/control-plane.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

skipWithoutControlPlane();

// What may happen to an API server, on the real one: nothing is lost and nothing is told twice.

const ADMIN = { commonName: "admin", organizations: ["system:masters"] };
const never = { signal: manyListeners().signal };
const namespace = "faults";

/** A reflector of the namespace's ConfigMaps behind a proxy; `log` has every change. */
class Follower {
  readonly log: string[] = [];
  readonly errors: string[] = [];
  readonly reflector: Reflector<ConfigMap>;
  private readonly controller = manyListeners();
  private readonly running: Promise<void>;
  private readonly close: () => void;
  syncs = 0;

  constructor(plane: TestControlPlane, server: string, clock: SystemClock | FakeClock = new SystemClock()) {
    const clients = testClients(clock, { ...plane.config(ADMIN), servers: [server] });
    this.close = () => clients.close();
    this.reflector = new Reflector<ConfigMap>(
      { api: clients.calls, clock },
      {
        resource: CONFIG_MAPS,
        select: { namespace, labelSelector: "mine=yes" },
        firstList: "latest",
        onChange: ({ kind, object }) => this.log.push(`${kind} ${object.metadata.name} ${object.data?.n}`),
        onSync: () => this.syncs++,
        onError: ({ code }) => this.errors.push(code),
      },
    );
    this.running = this.reflector.run(this.controller);
  }

  async stop(): Promise<void> {
    this.controller.abort();
    await this.running;
    this.close();
  }
}

describe("an API server with faults", () => {
  let plane: TestControlPlane;
  let proxy: TcpProxy;
  let admin: KubeApi;
  const put = async (name: string, n: string): Promise<void> => {
    const object = { metadata: { name, labels: { mine: "yes" } }, data: { n } };
    await admin.create(CONFIG_MAPS, { namespace, object }, never);
  };
  const change = async (name: string, n: string): Promise<void> => {
    await admin.patch(CONFIG_MAPS, { namespace, name, type: "merge", body: { data: { n } } }, never);
  };
  const remove = (name: string): Promise<void> => admin.delete(CONFIG_MAPS, { namespace, name }, never);
  const clear = async (): Promise<void> => {
    const { items } = await admin.list(CONFIG_MAPS, { namespace, labelSelector: "mine=yes" }, never);
    for (const { metadata } of items) await remove(metadata.name ?? "");
  };

  before(async () => {
    plane = await TestControlPlane.start();
    await plane.createNamespace(namespace);
    admin = plane.clients().calls;
    proxy = await TcpProxy.start(Number(new URL(plane.url).port));
  });
  after(async () => {
    await proxy?.stop();
    await plane?.stop();
  });

  test("connections cut in the middle of a stream of changes", async (t) => {
    const follower = new Follower(plane, proxy.url);
    t.after(() => follower.stop());
    await until("synced", () => follower.reflector.hasSynced);
    for (let n = 0; n < 30; n++) {
      await put(`cut-${n}`, "1");
      if (n % 7 === 3) proxy.cut();
    }
    await until("all are there", () => follower.reflector.objects.size === 30, 30_000);
    assert.equal(new Set(follower.log).size, follower.log.length, "nothing twice");
    assert.equal(follower.log.length, 30);
    assert.equal(follower.syncs, 1);
    await clear();
    await until("all are gone", () => follower.reflector.objects.size === 0);
  });

  test("killed and started again, with the history compacted meanwhile: 410, then differences", async (t) => {
    const follower = new Follower(plane, proxy.url);
    t.after(() => follower.stop());
    await put("kept", "1");
    await put("changed", "1");
    await put("removed", "1");
    await put("replaced", "1");
    await until("four", () => follower.reflector.objects.size === 4);
    const before = follower.log.length;
    await proxy.stop();
    await change("changed", "2");
    await remove("removed");
    await remove("replaced");
    await put("replaced", "2");
    await put("added", "1");
    await plane.compact();
    await plane.killApiServer();
    await plane.startApiServer();
    // Something must have happened after the restart, or the server's own cache begins where we stopped.
    await put("later", "1");
    await proxy.listen();
    // Its back-off has grown to 10 s and more.
    await until("the new state", () => follower.reflector.objects.has(`${namespace}/later`), 90_000);
    assert.deepEqual(follower.log.slice(before).sort(), [
      "added added 1",
      "added later 1",
      "added replaced 2",
      "deleted removed 1",
      "deleted replaced 1",
      "updated changed 2",
    ]);
    assert.ok(follower.errors.includes("Gone"), follower.errors.join(" "));
    assert.equal(follower.syncs, 2);
    await clear();
  });

  test("a connection that goes silent is left after a ping, and nothing is missed", async (t) => {
    const clock = new FakeClock({ wall: Date.now(), mono: 0 });
    const follower = new Follower(plane, proxy.url, clock);
    t.after(() => follower.stop());
    await until("synced", () => follower.reflector.hasSynced);
    await put("before", "1");
    await until("the first", () => follower.reflector.objects.size === 1);
    proxy.freeze();
    await put("meanwhile", "1");
    for (let step = 0; step < 24 && follower.errors.length === 0; step++) {
      await clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.deepEqual(follower.errors, ["Unavailable"]);
    for (let step = 0; step < 3000 && follower.reflector.objects.size < 2; step++) {
      await clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual(follower.log, ["added before 1", "added meanwhile 1"]);
    await clear();
  });

  test("400 watched objects while a lease is renewed on time", async (t) => {
    const clients = plane.clients();
    const clock = new SystemClock();
    const controller = manyListeners();
    await Promise.all(Array.from({ length: 400 }, (_, n) => put(`many-${n}`, "1")));
    const reflectors = Array.from(
      { length: 400 },
      (_, n) =>
        new Reflector<ConfigMap>(
          { api: clients.calls, clock },
          {
            resource: CONFIG_MAPS,
            select: { namespace, fieldSelector: `metadata.name=many-${n}` },
            firstList: "latest",
          },
        ),
    );
    const running = Promise.all(reflectors.map((reflector) => reflector.run(controller)));
    t.after(async () => {
      controller.abort();
      await running;
    });
    await until("all synced", () => reflectors.every(({ hasSynced }) => hasSynced), 60_000);
    const lease = { metadata: { name: "node" }, spec: { holderIdentity: "node", leaseDurationSeconds: 40 } };
    await clients.heartbeat.create(LEASES, { namespace, object: lease }, never);
    let slowest = 0;
    const changes = Promise.all(Array.from({ length: 400 }, (_, n) => change(`many-${n}`, "2")));
    for (let n = 0; n < 10; n++) {
      const began = performance.now();
      const body = { spec: { renewTime: `${new Date().toISOString().slice(0, -1)}000Z` } };
      await clients.heartbeat.patch(LEASES, { namespace, name: "node", type: "merge", body }, never);
      slowest = Math.max(slowest, performance.now() - began);
    }
    await changes;
    const hasSeen = ({ objects }: Reflector<ConfigMap>): boolean => [...objects.values()][0]?.data?.n === "2";
    await until("all changes seen", () => reflectors.every(hasSeen), 60_000);
    assert.ok(slowest < 5_000, `a renewal took ${Math.round(slowest)} ms`);
    t.diagnostic(`slowest renewal beside 400 changes: ${Math.round(slowest)} ms`);
    await clear();
  });
});
