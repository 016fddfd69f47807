import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { silent } from "../../lib/log.ts";
import { unread } from "./half-close.ts";
import { listenHttp } from "./http-server.ts";

const ACCEPT = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n";
const UP = "POST /up HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
/** Without care about half of them lose what is asked for. */
const ROUNDS = 30;

/** Runs `use` with the port of an agent whose `/up` leads to a backend that does `accept` with each connection. */
async function between(accept: (socket: Socket) => void, use: (port: number) => Promise<void>): Promise<void> {
  const sockets = new Set<Socket>();
  const backend = createServer().on("upgrade", (_, stream) => {
    const socket = stream as Socket; // reason: a plain server's upgrades are plain sockets
    sockets.add(socket.on("error", () => undefined));
    socket.write(ACCEPT, () => accept(socket));
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", () => resolve()));
  const upgradeTo = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/`; // reason: it listens on TCP
  const route = { methods: "any", path: "/up", handle: () => ({ status: 101, body: "", upgradeTo }) } as const;
  const address = { host: "127.0.0.1", port: 0 };
  const listener = await listenHttp({ log: silent }, { address, routes: [route] });
  try {
    await use(listener.port);
  } finally {
    await listener.close();
    for (const socket of sockets) socket.destroy();
    backend.close();
  }
}

/** A client that speaks without a pause as soon as it is let in, and hears to the end. */
function flood(port: number, whenAccepted: (socket: Socket) => void = () => undefined): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    let isIn = false;
    const block = Buffer.alloc(64 * 1024);
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }, () => socket.write(UP));
    const speak = (): void => {
      if (socket.writable && socket.write(block)) setImmediate(speak);
    };
    socket.on("error", () => undefined).on("drain", speak);
    socket.on("end", () => socket.end()).on("close", () => resolve(text));
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (isIn || !text.includes("\r\n\r\n")) return;
      isIn = true;
      whenAccepted(socket);
      speak();
    });
  });
}

for (const how of ["destroy", "resetAndDestroy"] as const) {
  test(`what a command said last is heard although its unread input is answered with a reset (${how})`, () =>
    between(
      (socket) => {
        socket.pause();
        setTimeout(() => socket.write("last words", () => socket[how]()), 2);
      },
      async (port) => {
        for (let round = 0; round < ROUNDS; round++) assert.match(await flood(port), /last words$/, `round ${round}`);
      },
    ));
}

test("what was read and not yet passed on when the connection broke is still there", async () => {
  const socket = new PassThrough();
  const rest = new Promise((resolve) => socket.on("error", () => resolve(unread(socket))));
  socket.write("last words");
  socket.destroy(new Error("reset"));
  assert.deepEqual(await rest, Buffer.from("last words"));
  assert.equal(unread(socket), undefined);
});

test("all output of a runtime before its end reaches a slow client that is still sending", () => {
  const size = 4 * 1024 * 1024;
  return between(
    (socket) => {
      socket.resume();
      socket.end(Buffer.alloc(size, "x"));
    },
    async (port) => {
      const heard = await flood(port, (socket) => {
        socket.pause();
        setTimeout(() => socket.resume(), 20);
      });
      assert.equal(heard.length - ACCEPT.length, size);
    },
  );
});
