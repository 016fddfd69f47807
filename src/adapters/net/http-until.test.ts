import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { silent } from "../../lib/log.ts";
import type { RouteAnswer } from "./http-route.ts";
import { listenHttp } from "./http-server.ts";

/** Serves one answer, and closes everything at the end. */
async function serving(answer: RouteAnswer, use: (port: number) => Promise<void>): Promise<void> {
  const routes = [{ methods: "any" as const, path: "/", handle: () => answer }];
  const listener = await listenHttp({ log: silent }, { address: { host: "127.0.0.1", port: 0 }, routes });
  try {
    await use(listener.port);
  } finally {
    await listener.close();
  }
}

test("a stream whose signal aborts is ended for a client that does not read", async () => {
  const ending = new AbortController();
  let isPulled = false;
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      yield Buffer.alloc(1 << 20);
      isPulled = true;
    }
  }
  await serving({ status: 200, body: endless(), until: ending.signal }, async (port) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined).write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "readable");
    while (!isPulled) await new Promise((resolve) => setImmediate(resolve));
    ending.abort();
    // Reading begins after the time that a client has for the rest: what comes then is what was on its way.
    await new Promise((resolve) => setTimeout(resolve, 1200));
    socket.resume();
    await once(socket, "close");
  });
});

test("a client that reads sees an ordinary end", async () => {
  const ending = new AbortController();
  async function* lines(): AsyncGenerator<string> {
    yield "one\n";
    await once(ending.signal, "abort");
  }
  await serving({ status: 200, body: lines(), until: ending.signal }, async (port) => {
    const text = await new Promise<string>((resolve, reject) => {
      get({ host: "127.0.0.1", port, agent: false }, (response) => {
        let seen = "";
        response.on("data", (chunk) => {
          seen += String(chunk);
          ending.abort();
        });
        response.on("end", () => resolve(seen)).on("error", reject);
      }).on("error", reject);
    });
    assert.equal(text, "one\n");
  });
});

for (const when of ["before", "after"] as const) {
  test(`a proxied upgrade whose signal aborts ${when} it began is closed, and so is the backend`, async () => {
    const ending = new AbortController();
    const backend = createServer();
    let accepted = 0;
    const closed = new Promise<void>((resolve) => {
      backend.on("connection", (socket) => socket.on("close", () => resolve()));
    });
    backend.on("upgrade", (_, socket) => {
      accepted++;
      socket.on("error", () => undefined).on("end", () => socket.end());
      socket.resume();
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello");
    });
    backend.listen(0, "127.0.0.1");
    await once(backend, "listening");
    const upgradeTo = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/`;
    if (when === "before") ending.abort();
    try {
      await serving({ status: 101, body: "", upgradeTo, until: ending.signal }, async (port) => {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => undefined);
        socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
        let seen = "";
        socket.on("data", (chunk) => {
          seen += String(chunk);
          if (seen.endsWith("hello")) ending.abort();
        });
        await once(socket, "close");
        if (when === "after") await closed;
        assert.equal(accepted, when === "after" ? 1 : 0);
        assert.equal(seen === "", when === "before");
      });
    } finally {
      backend.closeAllConnections();
      backend.close();
    }
  });
}
