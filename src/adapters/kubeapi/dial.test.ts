import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { certificate, newKey } from "./certificates.ts";
import { dial } from "./dial.ts";

const SUBJECT = { commonName: "api.test" };
const NAME = "api.test";
const key = newKey();
const pem = certificate(key, {
  subject: SUBJECT,
  dnsNames: [NAME],
  usages: ["server"],
  isAuthority: true,
  notBefore: Date.now() - 60_000,
  notAfter: Date.now() + 3_600_000,
});

/** Addresses of this machine that are all loopback: one name may stand for several of them. */
const FIRST = "127.0.0.1";
const SECOND = "127.0.0.2";

async function listen(t: TestContext, server: Server, place: { host: string; port: number }): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => undefined)));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(place.port, place.host, () => resolve());
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port; // reason: it listens on a port
}

async function scene(t: TestContext, addresses: readonly string[]) {
  const clock = new FakeClock();
  const port = await listen(t, createTlsServer({ key, cert: pem }), { host: SECOND, port: 0 });
  const target = {
    server: new URL(`https://${NAME}:${port}`),
    isInsecure: false,
    tls: { authority: pem, certificate: "", key: "" },
  };
  const { signal } = manyListeners();
  const connect = () => dial(target, { signal, clock, resolve: async () => addresses });
  return { clock, port, connect };
}

test("of several addresses behind one name the next is taken when one refuses", async (t) => {
  const { connect } = await scene(t, [FIRST, SECOND]);
  const { socket } = await connect();
  t.after(() => socket.destroy());
  assert.equal(socket.remoteAddress, SECOND);
});

test("of several addresses behind one name one that does not shake hands is left after three seconds", async (t) => {
  const { clock, port, connect } = await scene(t, [FIRST, SECOND]);
  const silent = createServer();
  let isLeft = false;
  silent.once("connection", (socket) => {
    // Nothing is answered; only a stream that is read tells its end.
    socket.resume().once("close", () => {
      isLeft = true;
    });
  });
  await listen(t, silent, { host: FIRST, port });
  const connecting = connect();
  // The handshake begins at some moment; its limit is on the clock, the rest is real and must not run out of time.
  while (!isLeft) {
    await clock.advance(200);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const { socket } = await connecting;
  t.after(() => socket.destroy());
  assert.equal(socket.remoteAddress, SECOND);
});

test("when none answers, all failures are told", async (t) => {
  const { connect } = await scene(t, [FIRST, "127.0.0.3"]);
  await assert.rejects(connect(), /127\.0\.0\.1.*; .*127\.0\.0\.3/);
});
