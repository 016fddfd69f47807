import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { GrpcChannel } from "./channel.ts";

test("a closed channel whose connection was watched does not connect again", { timeout: 20_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "kts-grpc-"));
  const path = join(dir, "s");
  const sockets: Socket[] = [];
  let ofChannel = 0;
  let began: () => void = () => undefined;
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined));
    socket.once("data", (bytes) => {
      if (bytes.toString().startsWith("PRI ")) ofChannel += 1;
      began();
    });
  });
  try {
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const channel = new GrpcChannel(path, undefined, { hasOwnConnection: true });
    const first = new Promise<void>((resolve) => (began = resolve));
    channel.watchConnection(() => undefined);
    await first;
    channel.close();
    // One of the channel would come between these.
    for (let count = 0; count < 50; count += 1) {
      const next = new Promise<void>((resolve) => (began = resolve));
      connect(path, function (this: Socket) {
        this.on("error", () => undefined).end("other");
      });
      await next;
    }
    assert.equal(ofChannel, 1);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(dir, { recursive: true, force: true });
  }
});
