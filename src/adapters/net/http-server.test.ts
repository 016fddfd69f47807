import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Logger, silent } from "../../lib/log.ts";
import { type HttpRoute, textAnswer } from "./http-route.ts";
import { type HttpListener, listenHttp } from "./http-server.ts";
import { ListenError } from "./listen-error.ts";
import { AgentError, UnixClient } from "./unix-client.ts";

const dir = mkdtempSync(join(tmpdir(), "http-"));
after(() => rmSync(dir, { recursive: true }));
const { signal } = new AbortController();
let sockets = 0;
const socketPath = (): string => join(dir, `${++sockets}.sock`);

async function withServer(
  routes: readonly HttpRoute[],
  work: (listener: HttpListener) => Promise<void>,
  log: Logger = silent,
) {
  const listener = await listenHttp({ log }, { address: { host: "127.0.0.1", port: 0 }, routes });
  try {
    await work(listener);
  } finally {
    await listener.close();
  }
}

function ask(
  port: number,
  path: string,
  method = "GET",
): Promise<{ status: number | undefined; type: string | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const call = request({ host: "127.0.0.1", port, path, method, agent: false }, (response) => {
      let body = "";
      response.on("data", (chunk) => (body += String(chunk)));
      response.on("end", () => resolve({ status: response.statusCode, type: response.headers["content-type"], body }));
    });
    call.on("error", reject);
    call.end();
  });
}

const routes: HttpRoute[] = [
  { methods: ["GET", "HEAD"], path: "/plain", handle: () => textAnswer(200, "hello") },
  { methods: "any", path: "/any", handle: ({ method }) => textAnswer(200, method) },
  {
    methods: ["GET"],
    path: "/p/:one/:two",
    handle: ({ params, query }) => textAnswer(200, `${params["one"]} ${params["two"]} ${query.get("q")}`),
  },
  { methods: ["GET"], path: "/bad", handle: () => Promise.reject(new Error("secret detail")) },
];

const cases = [
  { path: "/plain", status: 200, body: "hello" },
  { path: "/plain", method: "HEAD", status: 200, body: "" },
  { path: "/plain", method: "POST", status: 405, body: "405: Method Not Allowed" },
  { path: "/any", method: "DELETE", status: 200, body: "DELETE" },
  { path: "/nothing", status: 404, body: "404 page not found\n" },
  { path: "/plain/", status: 404, body: "404 page not found\n" },
  { path: "/p/a%20b/c?q=1", status: 200, body: "a b c 1" },
  { path: `/p/${"n".repeat(1000)}/c?q=1`, status: 200, body: `${"n".repeat(1000)} c 1` },
  { path: "/p/a%2Fb/c", status: 400, body: "400 Bad Request: encoded slashes are refused\n" },
  { path: "/p/../plain", status: 400, body: "400 Bad Request: `..` is refused\n" },
  { path: "/bad", status: 500, body: "Internal Error: see the agent's log\n" },
];
test("requests are routed, and refused by path and method", () =>
  withServer(routes, async ({ port }) => {
    for (const c of cases) {
      const { status, body } = await ask(port, c.path, c.method);
      assert.deepEqual({ path: c.path, status, body }, { path: c.path, status: c.status, body: c.body });
    }
  }));

test("what a handler throws goes to the log and not to the client", async () => {
  const logged: unknown[] = [];
  const log: Logger = { ...silent, error: (_message, error) => logged.push(error) };
  await withServer(routes, async ({ port }) => void (await ask(port, "/bad")), log);
  assert.match(String(logged[0]), /secret detail/);
});

test("text is sent as utf-8 text", () =>
  withServer(routes, async ({ port }) => assert.equal((await ask(port, "/plain")).type, "text/plain; charset=utf-8")));

test("a client that sends garbage gets a 400 and the server keeps serving", () =>
  withServer(routes, async ({ port }) => {
    const socket = connect(port, "127.0.0.1");
    socket.end("garbage\r\n\r\n");
    const [data] = await once(socket, "data");
    assert.match(String(data), /^HTTP\/1.1 400/);
    socket.destroy();
    assert.equal((await ask(port, "/plain")).status, 200);
  }));

test("a streamed body is pulled no faster than it is read, and abandoned when the client disconnects", async () => {
  let pulled = 0;
  let left = false;
  const endless: HttpRoute = {
    methods: ["GET"],
    path: "/endless",
    handle: () => ({
      status: 200,
      body: (async function* () {
        try {
          for (;;) {
            pulled++;
            yield Buffer.alloc(64 * 1024);
          }
        } finally {
          left = true;
        }
      })(),
    }),
  };
  await withServer([endless], async ({ port }) => {
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "readable");
    let before = -1;
    while (before !== pulled) {
      before = pulled;
      for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(pulled < 1000, `pulled ${pulled} blocks that nobody read`);
    socket.destroy();
    while (!left) await new Promise((resolve) => setImmediate(resolve));
  });
});

test("a port in use is named with its option and its holder", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const address = holder.address();
  assert.ok(address !== null && typeof address === "object");
  const { port } = address;
  const trying = listenHttp({ log: silent }, { address: { host: "127.0.0.1", port, option: "healthz-port" }, routes });
  await assert.rejects(trying, (error) => {
    assert.ok(error instanceof ListenError);
    assert.equal(error.code, "InUse");
    assert.match(
      error.message,
      new RegExp(`^port ${port} \\(--healthz-port\\) is in use by .+ \\(pid ${process.pid}\\)$`),
    );
    return true;
  });
  holder.close();
});

test("an address that the host does not have is named", async () => {
  const trying = listenHttp({ log: silent }, { address: { host: "203.0.113.7", port: 0 }, routes });
  await assert.rejects(trying, { code: "NoAddress" });
});

test("a unix socket is open to its owner only, and gone after close", async () => {
  const path = socketPath();
  const listener = await listenHttp({ log: silent }, { address: { path, mode: 0o600 }, routes });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(listener.address, path);
  await listener.close();
  assert.throws(() => statSync(path), { code: "ENOENT" });
});

test("a socket that a crashed agent left is replaced, a served one is not", async () => {
  const path = socketPath();
  const { spawnSync } = await import("node:child_process");
  const leaveBehind =
    "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
  spawnSync(process.execPath, ["-e", leaveBehind, path]);
  assert.ok(statSync(path).isSocket());
  const address = { path, mode: 0o600 };
  const listener = await listenHttp({ log: silent }, { address, routes });
  await assert.rejects(listenHttp({ log: silent }, { address, routes }), { code: "InUse" });
  assert.equal(
    await new UnixClient(path)
      .bytes("/plain", { signal })
      .next()
      .then((part) => String(part.value)),
    "hello",
  );
  await listener.close();
});

test("a file in the socket's place is not removed", async () => {
  const path = socketPath();
  writeFileSync(path, "precious");
  chmodSync(path, 0o600);
  await assert.rejects(listenHttp({ log: silent }, { address: { path, mode: 0o600 }, routes }), /is not a socket/);
});

test("a path that the kernel would cut is refused", async () => {
  const path = join(dir, "x".repeat(108));
  await assert.rejects(listenHttp({ log: silent }, { address: { path, mode: 0o600 }, routes }), {
    code: "PathTooLong",
  });
});

test("the client reads JSON and lines that arrive in pieces", async () => {
  const path = socketPath();
  const pieces = ['{"n":1}\n{"n"', ":2", '}\n\n{"n":"ü', '"}\n'];
  const lines: HttpRoute = {
    methods: ["GET"],
    path: "/lines",
    handle: () => ({
      status: 200,
      body: (async function* () {
        for (const piece of pieces) {
          yield piece;
          await new Promise((resolve) => setImmediate(resolve));
        }
      })(),
    }),
  };
  const value: HttpRoute = { methods: ["GET"], path: "/json", handle: () => ({ status: 200, body: '{"a":[1]}' }) };
  const listener = await listenHttp({ log: silent }, { address: { path, mode: 0o600 }, routes: [lines, value] });
  const client = new UnixClient(path);
  assert.deepEqual(await client.json("/json", { signal }), { a: [1] });
  const read: unknown[] = [];
  for await (const line of client.lines("/lines", { signal })) read.push(line);
  assert.deepEqual(read, [{ n: 1 }, { n: 2 }, { n: "ü" }]);
  await listener.close();
});

test("the client tells no agent, an error answer and broken JSON apart", async () => {
  await assert.rejects(new UnixClient(join(dir, "none.sock")).json("/", { signal }), { code: "NoAgent" });
  const path = socketPath();
  const listener = await listenHttp({ log: silent }, { address: { path, mode: 0o600 }, routes });
  const client = new UnixClient(path);
  await assert.rejects(client.json("/plain", { signal }), { code: "Broken" });
  await assert.rejects(client.json("/nothing", { signal }), (error) => {
    assert.ok(error instanceof AgentError);
    assert.deepEqual([error.code, error.details.status, error.details.body], ["Refused", 404, "404 page not found\n"]);
    return true;
  });
  await listener.close();
});

test("an abort ends the client's stream", async () => {
  const path = socketPath();
  const silentStream: HttpRoute = {
    methods: ["GET"],
    path: "/wait",
    handle: ({ signal: gone }) => ({
      status: 200,
      body: (async function* () {
        yield "x\n";
        await new Promise((resolve) => gone.addEventListener("abort", resolve));
      })(),
    }),
  };
  const listener = await listenHttp({ log: silent }, { address: { path, mode: 0o600 }, routes: [silentStream] });
  const controller = new AbortController();
  const reason = new Error("enough");
  await assert.rejects(async () => {
    for await (const _ of new UnixClient(path).bytes("/wait", controller)) controller.abort(reason);
  }, reason);
  await listener.close();
});

test("after a crowd of connections the callback is called once", async () => {
  let told = 0;
  const listener = await listenHttp(
    { log: silent },
    { address: { host: "127.0.0.1", port: 0 }, routes: [], afterCrowd: () => void told++ },
  );
  const crowd = await Promise.all(
    Array.from({ length: 510 }, async () => {
      const socket = connect(listener.port, "127.0.0.1").on("error", () => undefined);
      await new Promise((resolve) => socket.once("connect", resolve));
      return socket;
    }),
  );
  assert.equal(told, 0);
  // They are connected before the server has taken them: it takes one in each turn.
  for (let turn = 0; turn < 1000; turn++) await new Promise((resolve) => setImmediate(resolve));
  await Promise.all(
    crowd.map(async (socket) => {
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.end();
      await closed;
    }),
  );
  await listener.close();
  assert.equal(told, 1);
});
