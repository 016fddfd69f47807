import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import * as http2 from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Empty, ListAndWatchResponse } from "../devices/generated/deviceplugin.ts";
import { GrpcChannel, method } from "./channel.ts";
import { listenGrpc, serve } from "./server.ts";

const { signal } = new AbortController();
const options = { signal, timeoutMs: 10_000 };
const list = method("/test.Lists/List", Empty, ListAndWatchResponse);
const wait = method("/test.Lists/Wait", Empty, Empty);
const answer = ListAndWatchResponse.fromPartial({ devices: [{ ID: "x".repeat(100_000) }] });

async function listen(t: TestContext, limits: Parameters<typeof listenGrpc>[2]) {
  const directory = mkdtempSync(join(tmpdir(), "kts-grpc-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "s.sock");
  let waits: () => void = () => undefined;
  const waiting = new Promise<void>((resolve) => (waits = resolve));
  let leaves: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (leaves = resolve));
  const hang = (_request: Empty, { signal: isGone }: { signal: AbortSignal }): Promise<Empty> => {
    isGone.addEventListener("abort", leaves, { once: true });
    waits();
    return new Promise(() => undefined);
  };
  const listener = await listenGrpc({ path, mode: 0o600 }, [serve(list, () => answer), serve(wait, hang)], limits);
  t.after(() => listener.close());
  return {
    waiting,
    /** Resolves when the work of a call was aborted. */
    gone,
    client: () => {
      const channel = new GrpcChannel(path, undefined, { hasOwnConnection: true });
      t.after(() => channel.close());
      return channel;
    },
    /** Connects and sends nothing. */
    idle: async () => {
      const socket = connect(path).on("error", () => undefined);
      socket.resume();
      t.after(() => socket.destroy());
      await once(socket, "connect");
      return socket;
    },
    /** Asks for so many lists and reads none. */
    slow: async (calls: number) => {
      const socket = connect(path);
      const settings = { initialWindowSize: 1 };
      const session = http2.connect("http://localhost", { createConnection: () => socket, settings });
      session.on("error", () => undefined);
      t.after(() => session.destroy());
      const began = Array.from({ length: calls }, async () => {
        const headers = { ":method": "POST", ":path": list.path, "content-type": "application/grpc", te: "trailers" };
        const stream = session.request(headers).on("error", () => undefined);
        stream.end(Buffer.alloc(5));
        await once(stream, "response");
      });
      await Promise.all(began);
      return session;
    },
  };
}

test("a connection beyond the limit closes the one that was idle longest, so that silent ones do not keep others out", async (t) => {
  const { idle, client } = await listen(t, { connections: 2 });
  const [first, second] = [await idle(), await idle()];
  const closed = once(first, "close");
  assert.equal((await client().unary(list, {}, options)).devices.length, 1);
  await closed;
  assert.equal(second.destroyed, false);
});

test("a connection that its client has closed counts no more", async (t) => {
  const { idle, client } = await listen(t, { connections: 3 });
  const first = await idle();
  for (let times = 0; times < 5; times++) {
    const channel = client();
    await channel.unary(list, {}, options);
    // Seen by the server before the next answer.
    channel.close();
  }
  assert.equal(first.destroyed, false);
});

test("a connection with a call in progress is not the one that is closed", async (t) => {
  const { idle, client, waiting } = await listen(t, { connections: 2 });
  const stop = new AbortController();
  let isOver = false;
  const ended = client()
    .unary(wait, {}, { signal: stop.signal })
    .catch(() => (isOver = true));
  await waiting;
  const closed = once(await idle(), "close");
  await idle();
  await closed;
  assert.equal(isOver, false);
  stop.abort();
  await ended;
});

test("the work of a call ends when its client gives it up", { timeout: 20_000 }, async (t) => {
  const { client, waiting, gone } = await listen(t, {});
  const stop = new AbortController();
  const refused = assert.rejects(client().unary(wait, {}, { signal: stop.signal }));
  await waiting;
  stop.abort();
  await gone;
  await refused;
});

test("a request of more than 64 KiB is refused: all that clients send at once takes memory", async (t) => {
  const { client } = await listen(t, {});
  const channel = client();
  const large = { ...list, request: ListAndWatchResponse };
  const request = (bytes: number) => ({ devices: [{ ID: "x".repeat(bytes) }] });
  assert.equal((await channel.unary(large, request(60 * 1024), options)).devices.length, 1);
  await assert.rejects(channel.unary(large, request(70 * 1024), options), { code: "ResourceExhausted" });
});

test("clients that do not read their answers lose their connection, those that do are served", async (t) => {
  const { slow, client } = await listen(t, { unsentBytes: 1_000_000 });
  const unread = await slow(5);
  const reader = client();
  for (let calls = 0; calls < 30; calls++) await reader.unary(list, {}, options);
  assert.equal(unread.destroyed, false);
  const closed = once(unread, "close");
  const last = await slow(8);
  await closed;
  assert.equal(last.destroyed, false);
});
