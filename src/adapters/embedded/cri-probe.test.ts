import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CriProbe } from "./cri-probe.ts";

const { signal } = new AbortController();

/** A runtime that answers every call with this message and status. */
async function withServer(
  answer: { message?: number[]; status: string; words?: string },
  work: (socket: string) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "probe-"));
  const socket = join(directory, "s.sock");
  const sessions = new Set<ServerHttp2Session>();
  const server: Http2Server = createServer();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () =>
      stream.sendTrailers({ "grpc-status": answer.status, "grpc-message": encodeURIComponent(answer.words ?? "") }),
    );
    const message = Buffer.from(answer.message ?? []);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(message.byteLength, 1);
    stream.end(Buffer.concat([prefix, message]));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  try {
    await work(socket);
  } finally {
    for (const session of sessions) session.destroy();
    server.close();
    await rm(directory, { recursive: true });
  }
}

const bytes = (text: string): number[] => [...Buffer.from(text)];
const message = (field: number, data: number[]): number[] => [(field << 3) | 2, data.length, ...data];
const condition = (type: string, status: boolean, reason = ""): number[] =>
  message(1, [
    ...message(1, bytes(type)),
    ...(status ? [16, 1] : []),
    ...message(3, bytes(reason)),
    ...message(4, bytes("why")),
  ]);

test("what is not ready is told, other conditions are not asked about", async () => {
  const status = message(1, [
    ...condition("RuntimeReady", true),
    ...condition("NetworkReady", false, "NetworkPluginNotReady"),
    ...condition("ContainerdHasNoDeprecationWarnings", false, "Old"),
  ]);
  await withServer({ status: "0", message: status }, async (socket) => {
    const probe = new CriProbe(socket);
    assert.deepEqual(await probe.unreadiness({ signal }), ["NetworkPluginNotReady: why"]);
    probe.close();
  });
});

test("an image is there when the answer has one", async () => {
  await withServer({ status: "0", message: message(1, message(1, bytes("sha256:0"))) }, async (socket) => {
    const probe = new CriProbe(socket);
    assert.equal(await probe.hasImage("a:1", { signal }), true);
    probe.close();
  });
  await withServer({ status: "0" }, async (socket) => {
    const probe = new CriProbe(socket);
    assert.equal(await probe.hasImage("a:1", { signal }), false);
    probe.close();
  });
});

test("a refused call says why", async () => {
  await withServer({ status: "12", words: "unknown service" }, async (socket) => {
    const probe = new CriProbe(socket);
    await assert.rejects(probe.hasImage("a:1", { signal }), { code: "Unimplemented", message: /unknown service/ });
    probe.close();
  });
});

test("a socket that nobody listens on is unavailable", async () => {
  const probe = new CriProbe("/nonexistent/s.sock");
  await assert.rejects(probe.unreadiness({ signal }), { code: "Unavailable" });
  probe.close();
});
