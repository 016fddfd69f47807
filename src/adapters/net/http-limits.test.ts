import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { silent } from "../../lib/log.ts";
import { textAnswer } from "./http-route.ts";
import { listenHttp } from "./http-server.ts";

const routes = [{ path: "/*", methods: "any", handle: async () => textAnswer(200, "ok") }] as const;

test("connections and headers beyond the limits of a listener are refused, and the others are served", async (t) => {
  const address = { host: "127.0.0.1", port: 0, option: "port" };
  const limits = { connections: 2, headerBytes: 8192 };
  const listener = await listenHttp({ log: silent }, { address, routes, limits });
  t.after(() => listener.close());
  const open = async (): Promise<Socket> => {
    const socket = connect({ host: "127.0.0.1", port: listener.port });
    t.after(() => socket.destroy());
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  };
  const answerTo = async (socket: Socket, text: string): Promise<string> => {
    socket.write(text);
    const [data] = (await once(socket, "data")) as [Buffer];
    return data.toString("latin1").split("\r\n", 1)[0] ?? "";
  };
  const first = await open();
  const second = await open();
  assert.equal(await answerTo(first, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK");
  const third = await open();
  third.resume();
  await once(third, "close");
  const long = `GET /x HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(10_000)}\r\n\r\n`;
  assert.match(await answerTo(second, long), / 431 /);
});
