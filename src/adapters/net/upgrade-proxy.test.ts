import assert from "node:assert/strict";
import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { test } from "node:test";
import { silent } from "../../lib/log.ts";
import type { RouteAnswer, RouteRequest } from "./http-route.ts";
import { type HttpListener, listenHttp, type Patience } from "./http-server.ts";

interface Site {
  readonly port: number;
  readonly listener: HttpListener;
  /** Connections that the backend accepted for an upgrade. */
  readonly backends: Socket[];
  readonly heads: string[][];
}

/** An agent whose `/up` leads to a backend that echoes after an upgrade. */
async function site(
  use: (site: Site) => Promise<void>,
  accept: "101" | "403" | "none" = "101",
  patience?: Patience,
): Promise<void> {
  const backends: Socket[] = [];
  const heads: string[][] = [];
  const backend = createServer((_, response) => response.writeHead(403, { "X-Why": "no" }).end("not you"));
  if (accept === "101") {
    backend.on("upgrade", (incoming, stream, head: Buffer) => {
      const socket = stream as Socket;
      backends.push(socket);
      heads.push(incoming.rawHeaders);
      socket.on("error", () => undefined);
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\nX-Stream-Protocol-Version: v4\r\n\r\nhello;",
      );
      if (head.length > 0) socket.write(head);
      socket.pipe(socket);
    });
  }
  await listen(backend);
  const target = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/exec/token?x=1`;
  if (accept === "none") await new Promise((resolve) => backend.close(resolve));
  const handle = (): RouteAnswer => ({ status: 101, body: "", upgradeTo: target });
  const plain = (): RouteAnswer => ({ status: 200, body: "plain" });
  const slow = ({ signal }: RouteRequest): Promise<RouteAnswer> =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  const listener = await listenHttp(
    { log: silent },
    {
      ...(patience && { patience }),
      address: { host: "127.0.0.1", port: 0 },
      routes: [
        { methods: "any", path: "/up", handle },
        { methods: ["GET"], path: "/plain", handle: plain },
        { methods: ["GET"], path: "/slow", handle: slow },
      ],
    },
  );
  try {
    await use({ port: listener.port, listener, backends, heads });
  } finally {
    await listener.close();
    backend.closeAllConnections();
    for (const socket of backends) socket.destroy();
    backend.close();
  }
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
}

/** Opens a connection, writes a raw request, and collects what comes. */
function raw(
  port: number,
  text: string,
): { socket: Socket; text: () => string; until: (what: RegExp) => Promise<void>; closed: Promise<void> } {
  let seen = "";
  const waiting: (() => void)[] = [];
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.write(text));
  socket
    .on("error", () => undefined)
    .on("data", (chunk: Buffer) => {
      seen += chunk.toString("latin1");
      for (const wake of waiting.splice(0)) wake();
    });
  const closed = new Promise<void>((resolve) => {
    socket.on("end", () => socket.end());
    socket.on("close", () => {
      for (const wake of waiting.splice(0)) wake();
      resolve();
    });
  });
  const until = async (what: RegExp): Promise<void> => {
    while (!what.test(seen)) {
      assert.ok(!socket.destroyed, `closed after: ${seen}`);
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return { socket, text: () => seen, until, closed };
}

const UP =
  "POST /up HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4\r\nAuthorization: Bearer secret\r\n\r\n";

const IMPATIENT = { headersMs: 5000, requestMs: 5000, checkMs: 1000, answerMs: 100, stallMs: 100 };

test("a client that never reads its stream is disconnected, and the backend with it", () =>
  site(
    async ({ port, backends }) => {
      const client = raw(port, UP);
      await client.until(/hello;/);
      client.socket.pause();
      const [backend] = backends;
      assert.ok(backend);
      const gone = new Promise((resolve) => backend.once("close", resolve));
      const flood = (): void => {
        while (!backend.destroyed && backend.write(Buffer.alloc(1024 * 1024)));
      };
      backend.on("drain", flood);
      flood();
      await gone;
      client.socket.destroy();
    },
    "101",
    IMPATIENT,
  ));

test("an upgraded connection on which nothing is sent idles longer than a client may take to read", () =>
  site(
    async ({ port }) => {
      const client = raw(port, UP);
      await client.until(/hello;/);
      await new Promise((resolve) => setTimeout(resolve, 300));
      client.socket.write("later;");
      await client.until(/later;/);
      client.socket.destroy();
    },
    "101",
    IMPATIENT,
  ));

test("an upgrade is proxied with the data right after it, and bytes are copied both ways", () =>
  site(async ({ port, heads }) => {
    const client = raw(port, `${UP}first;`);
    await client.until(/hello;first;/);
    assert.match(client.text(), /^HTTP\/1\.1 101 Switching Protocols\r\n(.*\r\n)*X-Stream-Protocol-Version: v4\r\n/);
    client.socket.write("second;");
    await client.until(/second;/);
    const [head = []] = heads;
    assert.equal(head.includes("Authorization"), false);
    assert.equal(head.includes("X-Stream-Protocol-Version"), true);
    client.socket.destroy();
  }));

test("a token as subprotocol does not reach the runtime", () =>
  site(async ({ port, heads }) => {
    const protocols = "base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io";
    const client = raw(
      port,
      `GET /up HTTP/1.1\r\nHost: n\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: ${protocols}\r\n\r\n`,
    );
    await client.until(/hello;/);
    assert.equal(heads[0]?.[(heads[0]?.indexOf("Sec-WebSocket-Protocol") ?? -2) + 1], "v4.channel.k8s.io");
    client.socket.destroy();
  }));

test("a reset of either side ends the other at once", () =>
  site(async ({ port, backends }) => {
    const client = raw(port, UP);
    await client.until(/hello;/);
    const gone = new Promise<void>((resolve) => backends[0]?.on("close", () => resolve()));
    client.socket.resetAndDestroy();
    await gone;
    const second = raw(port, UP);
    await second.until(/hello;/);
    backends[1]?.resetAndDestroy();
    await second.closed;
  }));

test("the close of one side closes the stream, after all data in flight", () =>
  site(async ({ port, backends }) => {
    const client = raw(port, UP);
    await client.until(/hello;/);
    backends[0]?.end("last words;");
    await client.closed;
    assert.match(client.text(), /last words;$/);
    const second = raw(port, UP);
    await second.until(/hello;/);
    second.socket.end("bye;");
    await second.closed;
    assert.match(second.text(), /bye;$/);
  }));

test("the refusal of a backend is passed on with its body", () =>
  site(async ({ port }) => {
    const client = raw(port, UP);
    await client.closed;
    assert.match(client.text(), /^HTTP\/1\.1 403 Forbidden\r\n(.*\r\n)*X-Why: no\r\n/);
    assert.match(client.text(), /\r\n\r\nnot you$/);
  }, "403"));

test("an unreachable backend is a 500, not a hang", () =>
  site(async ({ port }) => {
    const client = raw(port, UP);
    await client.closed;
    assert.match(client.text(), /^HTTP\/1\.1 500 .*\r\n\r\n.*ECONNREFUSED/s);
  }, "none"));

test("a plain request for what needs an upgrade is a 500, and an upgrade of something plain is answered plainly", () =>
  site(async ({ port }) => {
    const plain = await new Promise<number>((resolve, reject) => {
      request({ port, host: "127.0.0.1", path: "/up", method: "POST" }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
    assert.equal(plain, 500);
    const client = raw(port, "GET /plain HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    await client.closed;
    assert.match(client.text(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nplain$/);
    const nope = raw(port, "GET /nope HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    await nope.closed;
    assert.match(nope.text(), /^HTTP\/1\.1 404 /);
  }));

test("closing the listener ends upgraded connections", () =>
  site(async ({ port, listener }) => {
    const client = raw(port, UP);
    await client.until(/hello;/);
    await listener.close();
    await client.closed;
  }));

for (const [what, path, answer] of [
  ["was refused and whose client does not close it", "/plain", /\r\n\r\nplain$/],
  ["nobody has answered yet", "/slow", undefined],
] as const) {
  test(`closing the listener ends a connection whose upgrade ${what}`, () =>
    site(async ({ port, listener }) => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => undefined);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
      let seen = "";
      socket.on("data", (chunk: Buffer) => (seen += chunk.toString("latin1")));
      while (answer !== undefined && !answer.test(seen)) await new Promise((resolve) => socket.once("data", resolve));
      if (answer === undefined) await new Promise((resolve) => setTimeout(resolve, 50));
      await listener.close();
      socket.destroy();
    }));
}

test("megabytes go through unchanged, at the speed of the slower", () =>
  site(async ({ port }) => {
    const client = raw(port, UP);
    await client.until(/hello;/);
    const size = 8 * 1024 * 1024;
    const block = Buffer.alloc(64 * 1024, "abcdefgh");
    let received = 0;
    const all = new Promise<void>((resolve) => {
      client.socket.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (received >= size) resolve();
      });
    });
    for (let sent = 0; sent < size; sent += block.length) client.socket.write(block);
    await all;
    assert.equal(received, size);
    client.socket.destroy();
  }));
