import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { identifyRuntime } from "./connect-runtime.ts";

const { signal } = new AbortController();

/** A directory for sockets. */
function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "runtime-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

test("a runtime that does not listen yet is not waited for", async (t) => {
  const endpoint = `unix://${directory(t)}/none.sock`;
  const found = await identifyRuntime({ clock: new FakeClock(), log: silent }, endpoint, { signal });
  assert.deepEqual(found, { version: undefined, driver: undefined });
});

test("a runtime that listens and is slow is waited for, half a minute at most", async (t) => {
  const path = `${directory(t)}/slow.sock`;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on("error", () => undefined))).listen(path);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, "listening");
  const clock = new FakeClock();
  let isOver = false;
  const found = identifyRuntime({ clock, log: silent }, `unix://${path}`, { signal }).finally(() => {
    isOver = true;
  });
  await once(server, "connection");
  await clock.advance(29_000);
  assert.equal(isOver, false);
  await clock.advance(1000);
  assert.deepEqual(await found, { version: undefined, driver: undefined });
});
