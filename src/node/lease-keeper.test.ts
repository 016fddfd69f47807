import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import type { Lease } from "../model/generated/types.ts";
import { INSTANCE_ANNOTATION, LeaseKeeper, microTime } from "./lease-keeper.ts";

/** One lease with versions, as a server keeps it. */
class Server {
  lease: Lease | undefined;
  version = 0;
  writes = 0;
  away = false;

  private check(): void {
    if (this.away) throw new ApiError("Unavailable", "away");
  }

  put(lease: Lease): Lease {
    this.writes++;
    this.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.version) } };
    return this.lease;
  }

  readonly api = {
    get: async () => {
      this.check();
      if (this.lease === undefined) throw new ApiError("NotFound", "no lease");
      return this.lease;
    },
    create: async (_resource: unknown, { object }: { object: unknown }) => {
      this.check();
      if (this.lease !== undefined) throw new ApiError("AlreadyExists", "there is one");
      return this.put(object as Lease);
    },
    update: async (_resource: unknown, { object }: { object: unknown }) => {
      this.check();
      const given = object as Lease;
      if (this.lease === undefined) throw new ApiError("NotFound", "no lease");
      if (given.metadata.resourceVersion !== this.lease.metadata.resourceVersion)
        throw new ApiError("Conflict", "stale");
      return this.put(given);
    },
  };
}

function keeper(server: Server, uid: () => string | undefined = () => "u1") {
  const clock = new FakeClock();
  const rivals: string[] = [];
  const made = new LeaseKeeper(
    {
      // The fake speaks of one kind only.
      api: server.api as never,
      clock,
      log: silent,
      random: () => 0,
      nodeUid: uid,
      rival: (message: string) => rivals.push(message),
    },
    { nodeName: "n1", instance: "me", durationSeconds: fixed(40) },
  );
  const stop = manyListeners();
  return { clock, rivals, stop, made, running: made.run(stop.signal) };
}

test("the lease is made and renewed every quarter of its duration", async () => {
  const server = new Server();
  const { clock, stop, running } = keeper(server);
  await clock.advance(0);
  assert.equal(server.lease?.spec.holderIdentity, "n1");
  assert.equal(server.lease?.spec.renewTime, microTime(Date.UTC(2026, 0, 1)));
  assert.equal(server.lease?.metadata.ownerReferences?.[0]?.uid, "u1");
  await clock.advance(10_000);
  assert.equal(server.lease?.spec.renewTime, microTime(Date.UTC(2026, 0, 1, 0, 0, 10)));
  assert.equal(server.writes, 2);
  stop.abort();
  await running;
});

test("there is no lease before there is a node", async () => {
  const server = new Server();
  const node: { uid?: string } = {};
  const { clock, stop, running } = keeper(server, () => node.uid);
  await clock.advance(5000);
  assert.equal(server.lease, undefined);
  node.uid = "u1";
  await clock.advance(200);
  assert.notEqual(server.lease, undefined);
  stop.abort();
  await running;
});

test("a renewal that is not ours is told of, and ours goes on", async () => {
  const server = new Server();
  const { clock, rivals, stop, running } = keeper(server);
  await clock.advance(0);
  const { lease } = server;
  assert.ok(lease);
  server.put({
    ...lease,
    metadata: { ...lease.metadata, annotations: { [INSTANCE_ANNOTATION]: "other" } },
    spec: { ...lease.spec, renewTime: "2026-01-01T00:00:05.000000Z" },
  });
  await clock.advance(10_000);
  assert.match(rivals.join(), /another agent runs as node "n1"/);
  assert.equal(server.lease?.metadata.annotations?.[INSTANCE_ANNOTATION], "me");
  stop.abort();
  await running;
});

test("an edit of the lease by somebody is no rival", async () => {
  const server = new Server();
  const { clock, rivals, stop, running } = keeper(server);
  await clock.advance(0);
  assert.ok(server.lease);
  server.put({ ...server.lease, metadata: { ...server.lease.metadata, labels: { a: "b" } } });
  await clock.advance(10_000);
  assert.deepEqual(rivals, []);
  assert.equal(server.lease.metadata.labels?.["a"], "b");
  stop.abort();
  await running;
});

test("a lease that was deleted is made again, and a server that is away is asked again soon", async () => {
  const server = new Server();
  const { clock, stop, running } = keeper(server);
  await clock.advance(0);
  server.lease = undefined;
  await clock.advance(10_000);
  assert.notEqual(server.lease, undefined);
  server.away = true;
  await clock.advance(10_000);
  const before = server.writes;
  server.away = false;
  await clock.advance(200);
  assert.equal(server.writes, before + 1);
  stop.abort();
  await running;
});

test("a jump of the wall clock changes no waiting", async () => {
  const server = new Server();
  const { clock, stop, running } = keeper(server);
  await clock.advance(0);
  clock.setWall(Date.UTC(2030, 0, 1));
  await clock.advance(10_000);
  assert.equal(server.writes, 2);
  assert.match(server.lease?.spec.renewTime ?? "", /^2030/);
  stop.abort();
  await running;
});
