import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { listenGrpc } from "./server.ts";

test("connections beyond the limit are closed at once: they would use up the agent's descriptors", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "kts-grpc-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "s.sock");
  const listener = await listenGrpc({ path, mode: 0o600 }, [], { mostConnections: 2 });
  t.after(() => listener.close());
  const open = async () => {
    const socket = connect(path).on("error", () => undefined);
    socket.resume();
    t.after(() => socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const [first, second, third] = [await open(), await open(), await open()];
  await once(third, "close");
  assert.deepEqual([first.destroyed, second.destroyed], [false, false]);
});
