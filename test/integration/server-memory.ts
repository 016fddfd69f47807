/** What thousands of TLS connections leave behind in the process that serves them: nothing. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { collectGarbage } from "../../src/adapters/host/collect-garbage.ts";
import { textAnswer } from "../../src/adapters/net/http-route.ts";
import { listenHttp } from "../../src/adapters/net/http-server.ts";
import { selfSignedPair } from "../../src/adapters/net/self-signed.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { until } from "./support/until.ts";

const CONNECTIONS = 2000;
const MOST_HEAP_BYTES = 2 * 1024 * 1024;
const MOST_RESIDENT_BYTES = 30 * 1024 * 1024;

/** Connects so many times from another process: asks, leaves in the middle of the answer, resets, or sends garbage. */
const CROWD = `
  const [port, count] = process.argv.slice(1).map(Number);
  const tls = require("node:tls");
  const net = require("node:net");
  const visit = (index) => new Promise((resolve) => {
    const kind = index % 5;
    if (kind === 4) {
      const bare = net.connect(port, "127.0.0.1", () => bare.end("\\x16\\x03\\x01 no handshake"));
      return bare.on("error", () => undefined).on("close", resolve).resume();
    }
    const bare = net.connect(port, "127.0.0.1");
    const socket = tls.connect({ socket: bare, rejectUnauthorized: false }, () => {
      socket.write("GET /plain HTTP/1.1\\r\\nHost: x\\r\\n" + (kind === 0 ? "" : "Connection: close\\r\\n\\r\\n"));
      if (kind === 0) socket.end();
      if (kind === 1) socket.destroy();
      if (kind === 2) bare.resetAndDestroy();
    });
    bare.on("error", () => undefined).on("close", resolve);
    socket.on("error", () => undefined).resume();
  });
  (async () => {
    for (let first = 0; first < count; first += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, index) => visit(first + index)));
    }
    process.exit(0);
  })();
`;

describe("the memory of a TLS server", () => {
  const directory = mkdtempSync(join(tmpdir(), "kmem-"));
  after(() => rmSync(directory, { recursive: true }));

  it(`is back where it was after ${CONNECTIONS} connections, whole, cut and broken`, async () => {
    const pair = await selfSignedPair(directory, "localhost", Date.now());
    const listener = await listenHttp(
      { log: silent },
      {
        address: { host: "127.0.0.1", port: 0 },
        routes: [{ methods: ["GET"], path: "/plain", handle: () => textAnswer(200, "x".repeat(100_000)) }],
        tls: { material: fixed({ ...pair, clientAuthorities: pair.certificate }), minVersion: "TLSv1.2" },
      },
    );
    const visits = async (count: number): Promise<void> => {
      const crowd = spawn(process.execPath, ["-e", CROWD, String(listener.port), String(count)], { stdio: "inherit" });
      assert.deepEqual(await once(crowd, "close"), [0, null]);
    };
    const used = (): { heap: number; resident: number } => {
      collectGarbage();
      const { heapUsed, rss } = process.memoryUsage();
      return { heap: heapUsed, resident: rss };
    };
    await visits(500);
    const before = used();
    await visits(CONNECTIONS);
    await until("the heap is as small as before", () => used().heap - before.heap < MOST_HEAP_BYTES, {
      seen: () => ({ before, now: used() }),
    });
    await until("the rest is given back", () => used().resident - before.resident < MOST_RESIDENT_BYTES, {
      seen: () => ({ before, now: used() }),
    });
    await listener.close();
  });
});
