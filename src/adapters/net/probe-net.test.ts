import assert from "node:assert/strict";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { AbortScope, manyListeners, TimeLimitError } from "../../lib/abort.ts";
import { SystemClock } from "../../lib/clock.ts";
import { type HttpRequest, hostAndPort } from "../../model/http-action.ts";
import { followRedirects, isSameHost, redirected } from "./http-redirects.ts";
import { ProbeNetError } from "./probe-error.ts";
import { type GrpcHealthAnswer, grpcHealth } from "./probe-grpc.ts";
import { httpGet } from "./probe-http.ts";
import { probeTcp } from "./probe-tcp.ts";

const { signal } = manyListeners();
const clock = new SystemClock();

async function listening(t: TestContext, server: Server | Http2Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function request(port: number, more: Partial<HttpRequest> = {}): HttpRequest {
  const base = { scheme: "http", host: "127.0.0.1", port, target: "/" } as const;
  return { ...base, hostHeader: hostAndPort("127.0.0.1", port), headers: [], ...more };
}

/** A server that answers every connection with these bytes and keeps it open. */
function raw(t: TestContext, answer: string, seen: string[] = []): Promise<number> {
  const server = createServer((socket) => {
    socket.on("data", (chunk: Buffer) => {
      seen.push(chunk.toString());
      socket.write(answer);
    });
  });
  return listening(t, server);
}

async function freePort(t: TestContext): Promise<number> {
  const server = createServer();
  const port = await listening(t, server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function within<T>(ms: number, work: (own: AbortSignal) => Promise<T>): Promise<T> {
  const scope = new AbortScope([signal], { clock, ms });
  try {
    return await work(scope.signal);
  } finally {
    scope.dispose();
  }
}

describe("an HTTP probe's connection", () => {
  test("asks as told and closes by itself when the answer is complete", async (t) => {
    const seen: string[] = [];
    const port = await raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", seen);
    const headers = [["User-Agent", "kube-probe/1.36"] as const];
    const answer = await httpGet(request(port, { target: "/x?a=b", hostHeader: "site.test", headers }), { signal });
    assert.deepEqual(answer, { status: 200, location: undefined, body: "ok" });
    const want = "GET /x?a=b HTTP/1.1\r\nHost: site.test\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n";
    assert.deepEqual(seen, [want]);
  });

  test("many at the same time do not mix up their answers", async (t) => {
    const server = createHttpServer((incoming, response) => response.end(`${incoming.url}`.repeat(50)));
    const port = await listening(t, server);
    const targets = Array.from({ length: 40 }, (_, index) => `/${index}`);
    const answers = await Promise.all(targets.map((target) => httpGet(request(port, { target }), { signal })));
    assert.deepEqual(
      answers.map(({ body }) => body),
      targets.map((target) => target.repeat(50)),
    );
  });

  test("each is a new one, however the one before it ended", async (t) => {
    const ports = new Set<number | undefined>();
    const server = createServer((socket) => {
      ports.add(socket.remotePort);
      socket.on("data", (chunk: Buffer) => {
        const [, way = ""] = /GET \/(\w*)/.exec(chunk.toString()) ?? [];
        if (way === "reset") return void socket.resetAndDestroy();
        if (way === "nothing") return void socket.end();
        if (way === "late") return;
        const answer = `HTTP/1.1 200 OK\r\n\r\n${way}`;
        if (way === "first") socket.end(answer);
        else socket.write(answer.replace("\r\n\r\n", `\r\nContent-Length: ${way.length}\r\n\r\n`));
      });
    });
    const port = await listening(t, server);
    const ask = (target: string): Promise<string> =>
      within(target === "/late" ? 50 : 10_000, (own) => httpGet(request(port, { target }), { signal: own })).then(
        ({ body }) => body,
        (error: Error) => error.name,
      );
    const targets = ["/first", "/reset", "/ours", "/nothing", "/late", "/ours", "/first"];
    const got: string[] = [];
    for (const target of [...targets, ...targets]) got.push(await ask(target));
    const want = ["first", "ProbeNetError", "ours", "ProbeNetError", "TimeLimitError", "ours", "first"];
    assert.deepEqual(got, [...want, ...want]);
    assert.equal(ports.size, got.length);
  });

  test("a name that is still being looked up when its probe ends leads nobody astray", async (t) => {
    let strays = 0;
    const server = createServer(() => strays++);
    const port = await listening(t, server);
    const other = await raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    for (let round = 0; round < 20; round++) {
      const controller = new AbortController();
      const asked = httpGet(request(port, { host: "localhost" }), { signal: controller.signal });
      controller.abort(new Error("enough"));
      await assert.rejects(asked, { message: "enough" });
      // The end of the socket comes round a moment later.
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal((await httpGet(request(other), { signal })).body, "ok");
    }
    assert.equal(strays, 0);
  });

  test("a socket without an agent, then with one", async (t) => {
    const port = await freePort(t);
    await assert.rejects(httpGet(request(port), { signal }), { code: "Dial" });
    await assert.rejects(probeTcp({ host: "127.0.0.1", port }, { signal }), { code: "Dial" });
    const server = createServer((socket) => socket.resume().end("HTTP/1.1 204\r\n\r\n"));
    server.on("connection", (socket) => socket.on("error", () => undefined));
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    t.after(() => void server.close());
    await probeTcp({ host: "127.0.0.1", port }, { signal });
    assert.equal((await httpGet(request(port), { signal })).status, 204);
  });

  test("reads 10 KiB of a body without end", async (t) => {
    const port = await raw(t, `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(50_000)}`);
    assert.equal((await httpGet(request(port), { signal })).body.length, 10 * 1024);
  });

  test("judges by the status line when the body never ends", async (t) => {
    const port = await raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nab");
    // Long enough for what does come, also on a busy machine.
    const answer = await within(1000, (own) => httpGet(request(port), { signal: own }));
    assert.deepEqual([answer.status, answer.body], [200, "ab"]);
  });

  test("a server that says nothing is the time limit's", async (t) => {
    const port = await raw(t, "");
    await assert.rejects(
      within(30, (own) => httpGet(request(port), { signal: own })),
      TimeLimitError,
    );
  });

  test("a closed port is a refused connection in Kubernetes' words", async (t) => {
    const port = await freePort(t);
    const want = { code: "Dial", message: `dial tcp 127.0.0.1:${port}: connect: connection refused` };
    await assert.rejects(httpGet(request(port), { signal }), want);
  });

  test("a connection that is closed without a word is EOF", async (t) => {
    const port = await listening(
      t,
      createServer((socket) => socket.on("data", () => socket.end())),
    );
    await assert.rejects(httpGet(request(port), { signal }), { code: "Broken", message: "EOF" });
  });

  test("an HTTP response to an HTTPS request is recognized", async (t) => {
    const port = await raw(t, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    await assert.rejects(httpGet(request(port, { scheme: "https" }), { signal }), { code: "PlainAnswer" });
  });

  test("an abort leaves nothing open", async (t) => {
    const port = await raw(t, "");
    const controller = new AbortController();
    const asked = httpGet(request(port), { signal: controller.signal });
    controller.abort(new Error("enough"));
    await assert.rejects(asked, { message: "enough" });
  });
});

describe("redirects", () => {
  const serve = (t: TestContext, answer: (incoming: IncomingMessage) => [number, string?]): Promise<number> =>
    listening(
      t,
      createHttpServer((incoming, response) => {
        const [status, location] = answer(incoming);
        response.writeHead(status, location === undefined ? {} : { location });
        response.end("body");
      }),
    );
  const follow = (first: HttpRequest) => followRedirects(httpGet, first, { signal, mayFollow: isSameHost });

  test("are followed on the same host, with the Host header while they name no host", async (t) => {
    const hosts: string[] = [];
    const port = await serve(t, (incoming) => {
      hosts.push(`${incoming.headers.host} ${incoming.url}`);
      return incoming.url === "/end?x"
        ? [200]
        : [302, incoming.url === "/" ? "next" : `http://127.0.0.1:${port}/end?x`];
    });
    assert.equal((await follow(request(port, { hostHeader: "site.test" }))).status, 200);
    assert.deepEqual(hosts, ["site.test /", "site.test /next", `127.0.0.1:${port} /end?x`]);
  });

  test("to another host are not followed", async (t) => {
    const port = await serve(t, () => [302, "http://localhost/x"]);
    const answer = await follow(request(port));
    assert.deepEqual([answer.status, answer.body], [302, "body"]);
  });

  test("without a Location are answers", async (t) => {
    const port = await serve(t, () => [301]);
    assert.equal((await follow(request(port))).status, 301);
  });

  test("end after ten requests", async (t) => {
    let count = 0;
    const port = await serve(t, () => [302, `/${++count}`]);
    await assert.rejects(follow(request(port)), { code: "Redirects", message: "stopped after 10 redirects" });
    assert.equal(count, 10);
  });

  test("may go to another port and to https", () => {
    const { scheme, host, port, target } = redirected(request(80), "https://127.0.0.1/a?b#c");
    assert.deepEqual({ scheme, host, port, target }, { scheme: "https", host: "127.0.0.1", port: 443, target: "/a?b" });
  });

  test("to something that is no web address fail", () => {
    assert.throws(() => redirected(request(80), "ftp://127.0.0.1/"), /unsupported protocol scheme "ftp"/);
  });
});

describe("a TCP probe's connection", () => {
  test("a taken connection is enough, and is closed", async (t) => {
    let closed = (): void => undefined;
    const whenClosed = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const port = await listening(
      t,
      createServer((socket) => socket.resume().on("close", () => closed())),
    );
    await probeTcp({ host: "127.0.0.1", port }, { signal });
    await whenClosed;
  });

  test("a closed port is refused", async (t) => {
    const port = await freePort(t);
    const message = `dial tcp 127.0.0.1:${port}: connect: connection refused`;
    await assert.rejects(probeTcp({ host: "127.0.0.1", port }, { signal }), { name: "ProbeNetError", message });
  });

  test("a name that does not resolve", async () => {
    const refused = probeTcp({ host: "nowhere.invalid", port: 1 }, { signal });
    await assert.rejects(refused, (error) => error instanceof ProbeNetError && error.code === "Dial");
  });
});

describe("a gRPC health check", () => {
  /** A health server as gRPC servers are on the wire: one message, then the status in the trailers. */
  async function health(t: TestContext, answer: (service: Buffer, stream: ServerHttp2Stream) => void): Promise<number> {
    const server = createHttp2Server();
    server.on("stream", (stream, headers) => {
      assert.equal(headers[":path"], "/grpc.health.v1.Health/Check");
      assert.equal(headers["content-type"], "application/grpc");
      const chunks: Buffer[] = [];
      stream.on("error", () => undefined);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => answer(Buffer.concat(chunks), stream));
    });
    return listening(t, server);
  }

  function serve(stream: ServerHttp2Stream, status: number): void {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, status]));
  }

  const ask = (port: number, service = ""): Promise<GrpcHealthAnswer> =>
    within(2000, (own) =>
      grpcHealth({ host: "127.0.0.1", port, service, userAgent: "kube-probe/1.36" }, { signal: own }),
    );

  for (const [number, word] of [
    [1, "SERVING"],
    [2, "NOT_SERVING"],
    [3, "SERVICE_UNKNOWN"],
  ] as const) {
    test(`${number} is ${word}`, async (t) => {
      const port = await health(t, (_service, stream) => serve(stream, number));
      assert.deepEqual(await ask(port), { code: 0, message: "", status: word });
    });
  }

  test("asks for the service by its name", async (t) => {
    const asked: Buffer[] = [];
    const port = await health(t, (message, stream) => {
      asked.push(message);
      serve(stream, 1);
    });
    await ask(port);
    await ask(port, "x".repeat(200));
    assert.deepEqual(asked[0], Buffer.from([0, 0, 0, 0, 0]));
    assert.deepEqual(asked[1]?.subarray(0, 8), Buffer.from([0, 0, 0, 0, 203, 0x0a, 200, 1]));
  });

  test("an error is told in the trailers, or in the headers when there is nothing else", async (t) => {
    const port = await health(t, (_service, stream) => {
      stream.respond({ ":status": 200, "grpc-status": "5", "grpc-message": "unknown%20service" }, { endStream: true });
    });
    assert.deepEqual(await ask(port), { code: 5, message: "unknown service", status: undefined });
  });

  test("a web server that knows no gRPC", async (t) => {
    const port = await health(t, (_service, stream) => stream.respond({ ":status": 404 }, { endStream: true }));
    assert.equal((await ask(port)).code, 12);
  });

  test("a closed port is a failed connection", async (t) => {
    const port = await freePort(t);
    await assert.rejects(ask(port), { code: "Dial" });
  });

  test("no answer is the time limit's", async (t) => {
    const port = await health(t, () => undefined);
    const late = within(50, (own) =>
      grpcHealth({ host: "127.0.0.1", port, service: "", userAgent: "" }, { signal: own }),
    );
    await assert.rejects(late, TimeLimitError);
  });

  test("a server that speaks HTTP/1 is unavailable, not a crash", async (t) => {
    const port = await raw(t, "HTTP/1.1 400 Bad Request\r\n\r\n");
    assert.notEqual((await ask(port)).code, 0);
  });
});
