import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { Logger } from "../../lib/log.ts";
import type { BodySink, PushedBody } from "./http-route.ts";
import { listenHttp } from "./http-server.ts";
import { ChunkFrames } from "./push-body.ts";

/** A body that a test sends by hand. */
class HandBody implements PushedBody {
  readonly calls: string[] = [];
  /** How often it was asked for. */
  sent = 0;
  readonly sink: Promise<BodySink>;
  private begin: (sink: BodySink) => void = () => undefined;
  private called: () => void = () => undefined;

  constructor() {
    this.sink = new Promise((resolve) => {
      this.begin = resolve;
    });
  }

  sendTo(sink: BodySink): { resume(): void; stop(): void } {
    this.begin(sink);
    this.sent++;
    const note = (call: string) => () => {
      this.calls.push(call);
      this.called();
    };
    return { resume: note("resume"), stop: note("stop") };
  }

  /** Resolves at the next call of the connection. */
  call(): Promise<void> {
    return new Promise((resolve) => {
      this.called = resolve;
    });
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    throw new Error("it is pushed");
  }
}

/** Serves a body at `/body` and a short text elsewhere. */
async function serving(use: (port: number, body: HandBody, errors: unknown[]) => Promise<void>): Promise<void> {
  const body = new HandBody();
  const errors: unknown[] = [];
  const handle = async ({ path }: { path: string }) =>
    path === "/body" ? { status: 200, body } : { status: 200, body: "short" };
  const log = { error: (_: string, error: unknown) => void errors.push(error) } as unknown as Logger; // reason: all that is used
  const address = { host: "127.0.0.1", port: 0 };
  const listener = await listenHttp({ log }, { address, routes: [{ methods: "any", path: "/*", handle }] });
  try {
    await use(listener.port, body, errors);
  } finally {
    await listener.close();
  }
}

function client(port: number, request: string): { socket: Socket; text: Promise<string> } {
  const socket = connect(port, "127.0.0.1");
  const chunks: Buffer[] = [];
  socket.on("error", () => undefined).on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.write(request);
  const text = once(socket, "close").then(() => Buffer.concat(chunks).toString());
  return { socket, text };
}

const bodyOf = (text: string): string => text.slice(text.lastIndexOf("\r\n\r\n", text.length - 5) + 4);

for (const { version, want } of [
  { version: "1.1", want: "4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n" },
  { version: "1.0", want: "one\ntwo\n" },
]) {
  test(`the pieces of a pushed body reach a client of HTTP/${version}, and their end`, async () => {
    await serving(async (port, body) => {
      const { text } = client(port, `GET /body HTTP/${version}\r\nHost: x\r\nConnection: close\r\n\r\n`);
      const sink = await body.sink;
      assert.ok(sink.write(Buffer.from("one\n")));
      assert.ok(sink.write(Buffer.from("two\n")));
      sink.end();
      const whole = await text;
      assert.equal(whole.slice(whole.indexOf("\r\n\r\n") + 4), want);
      assert.deepEqual(body.calls, []);
    });
  });
}

test("a pushed body waits behind an earlier answer of its connection", async () => {
  await serving(async (port, body) => {
    const requests = [
      "GET /short HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ];
    const { text } = client(port, requests.join(""));
    const sink = await body.sink;
    sink.write(Buffer.from("one\n"));
    sink.end();
    const whole = await text;
    assert.ok(whole.indexOf("short") > 0 && whole.indexOf("short") < whole.indexOf("4\r\none\n\r\n0\r\n\r\n"), whole);
  });
});

test("a client that does not read stops a pushed body, and one that reads again resumes it", async () => {
  await serving(async (port, body) => {
    const { socket, text } = client(port, "GET /body HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const sink = await body.sink;
    socket.pause();
    const piece = Buffer.alloc(60_000, "x");
    let pieces = 1;
    while (sink.write(piece)) pieces++;
    const resumed = body.call();
    socket.resume();
    await resumed;
    assert.deepEqual(body.calls, ["resume"]);
    // Larger ones are not copied into a frame.
    sink.write(Buffer.alloc(100_000, "y"));
    sink.end();
    const whole = await text;
    assert.equal(whole.match(/x{60000}/g)?.length, pieces);
    assert.match(whole, /\r\n186a0\r\ny{100000}\r\n0\r\n\r\n$/);
  });
});

test("a pushed body is stopped when its client leaves", async () => {
  await serving(async (port, body) => {
    const { socket } = client(port, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n");
    const sink = await body.sink;
    const stopped = body.call();
    socket.destroy();
    await stopped;
    assert.deepEqual(body.calls, ["stop"]);
    assert.equal(typeof sink.write(Buffer.from("nobody reads it")), "boolean");
  });
});

test("a pushed body that fails is logged, and its client sees no ordinary end", async () => {
  await serving(async (port, body, errors) => {
    const { text } = client(port, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n");
    const sink = await body.sink;
    sink.write(Buffer.from("one\n"));
    sink.fail(new Error("cannot be read"));
    assert.equal(bodyOf(await text).endsWith("0\r\n\r\n"), false);
    assert.match(String(errors[0]), /cannot be read/);
  });
});

test("bytes that go to many are framed once", () => {
  const frames = new ChunkFrames();
  const bytes = Buffer.from("0123456789abcdef");
  const frame = frames.frameOf(bytes);
  assert.equal(frame.toString(), "10\r\n0123456789abcdef\r\n");
  assert.equal(frames.frameOf(bytes), frame);
  assert.notEqual(frames.frameOf(Buffer.from(bytes)), frame);
});

test("a pushed body that waits behind another one ends when its client disconnects", async () => {
  await serving(async (port, body) => {
    const request = "GET /body HTTP/1.1\r\nHost: x\r\n\r\n";
    const { socket } = client(port, request + request);
    await body.sink;
    while (body.sent < 2) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    while (body.calls.length < 2) await body.call();
    assert.deepEqual(body.calls, ["stop", "stop"]);
  });
});

test("a client is disconnected when a pushed body fails long after the request", async () => {
  await serving(async (port, body, errors) => {
    const { socket, text } = client(port, "GET /body HTTP/1.1\r\nHost: x\r\n\r\n");
    const sink = await body.sink;
    sink.write(Buffer.from("one\n"));
    await once(socket, "data");
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    sink.fail(new Error("broken"));
    assert.match(await text, /one/);
    assert.equal(errors.length, 1);
  });
});
