import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePort } from "./free-port.ts";

test("no port is given twice, also not to two that ask at once", async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, () => freePort()));
  assert.equal(new Set(ports).size, ports.length);
});

test("a port that somebody listens on, at any address, is passed over", async () => {
  const port = await freePort();
  const server = createServer();
  // One that is taken already serves as well.
  await new Promise<void>((resolve) => {
    server.once("error", () => resolve()).listen(port + 1, "127.0.0.1", resolve);
  });
  assert.notEqual(await freePort(), port + 1);
  server.close();
});
