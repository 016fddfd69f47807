import assert from "node:assert/strict";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { silent } from "../../lib/log.ts";
import type { RouteAnswer, RouteRequest } from "./http-route.ts";
import { listenHttp } from "./http-server.ts";

/** A backend that takes upgrades and says its name. */
async function backend(
  t: TestContext,
  name: string,
): Promise<{ url: string; connections: Set<Socket>; server: Server }> {
  const connections = new Set<Socket>();
  const server = createServer();
  server.on("connection", (socket) => {
    connections.add(socket.on("error", () => undefined).on("close", () => void connections.delete(socket)));
  });
  server.on("upgrade", (_request, socket) => {
    socket.end(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n${name}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of connections) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, connections, server };
}

/** An agent that asks `answer` where upgrades go, after it said that one is to be expected. */
async function agent(t: TestContext, answer: () => Promise<RouteAnswer>): Promise<() => Promise<string>> {
  const handle = (incoming: RouteRequest): Promise<RouteAnswer> => {
    incoming.expectUpgrade?.();
    return answer();
  };
  const routes = [{ methods: "any", path: "/up", handle }] as const;
  const listener = await listenHttp({ log: silent }, { address: { host: "127.0.0.1", port: 0 }, routes });
  t.after(() => listener.close());
  return () =>
    new Promise((resolve, reject) => {
      const headers = { Connection: "Upgrade", Upgrade: "x" };
      const call = request({ host: "127.0.0.1", port: listener.port, path: "/up", headers });
      call.on("error", reject);
      call.on("response", (refused) => resolve(String(refused.resume().statusCode)));
      call.on("upgrade", (_answer, socket, head) => {
        let text = head.toString();
        socket.on("error", reject).on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        socket.on("end", () => socket.end()).on("close", () => resolve(text));
      });
      call.end();
    });
}

const upgradeTo = (url: string): RouteAnswer => ({ status: 101, body: "", upgradeTo: url });

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; ) {
    if (holds()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.fail(`never: ${what}`);
}

test("from the second upgrade on the connection is there before its address is known, and it is the one that is used", async (t) => {
  const first = await backend(t, "first");
  let seen = 0;
  let isKnown = true;
  first.server.on("connection", () => seen++);
  const ask = await agent(t, async () => {
    if (!isKnown) await until("a connection is there", () => seen === 2);
    return upgradeTo(first.url);
  });
  assert.equal(await ask(), "first");
  isKnown = false;
  assert.equal(await ask(), "first");
  assert.equal(seen, 2);
});

test("another address than the last time: the early connection is closed and the right one is made", async (t) => {
  const first = await backend(t, "first");
  const second = await backend(t, "second");
  const targets = [first.url, second.url, second.url];
  const ask = await agent(t, async () => upgradeTo(targets.shift() ?? ""));
  assert.deepEqual([await ask(), await ask(), await ask()], ["first", "second", "second"]);
  await until("nothing is left open", () => first.connections.size === 0 && second.connections.size === 0);
});

test("a backend that has closed is replaced by the new one", async (t) => {
  const first = await backend(t, "first");
  const second = await backend(t, "second");
  const targets = [first.url, second.url];
  const ask = await agent(t, async () => upgradeTo(targets.shift() ?? ""));
  assert.equal(await ask(), "first");
  await new Promise((resolve) => first.server.close(resolve));
  assert.equal(await ask(), "second");
});

test("an answer without an upgrade closes the early connection", async (t) => {
  const first = await backend(t, "first");
  const answers = [upgradeTo(first.url), { status: 404, body: "no" }];
  const ask = await agent(t, async () => answers.shift() ?? { status: 500, body: "" });
  assert.equal(await ask(), "first");
  assert.equal(await ask(), "404");
  await until("nothing is left open", () => first.connections.size === 0);
});
