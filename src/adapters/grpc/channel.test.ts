import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { Empty, ListAndWatchResponse } from "../devices/generated/deviceplugin.ts";
import { GrpcChannel, method } from "./channel.ts";

const { signal } = new AbortController();
const list = method("/test.Lists/List", Empty, ListAndWatchResponse);
const count = method("/test.Lists/Count", Empty, Empty);

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

test("messages of a server that is not trusted are decoded when they are read, one by one", async (t) => {
  let decoded = 0;
  const response = {
    ...ListAndWatchResponse,
    decode: (bytes: Parameters<typeof ListAndWatchResponse.decode>[0]) => {
      decoded++;
      return ListAndWatchResponse.decode(bytes);
    },
  };
  const server = await new CriServer()
    .stream(list, (call) => {
      for (let at = 0; at < 20; at++) {
        call.write(ListAndWatchResponse.fromPartial({ devices: [{ ID: String(at) }] }));
      }
      call.end();
    })
    .unary(count, (_call, callback) => callback(null, {}))
    .start();
  const channel = new GrpcChannel(`unix://${server.socket}`, undefined, { hasOwnConnection: true });
  t.after(() => server.stop());
  t.after(() => channel.close());
  const seen: (string | undefined)[] = [];
  for await (const message of channel.messages({ ...list, response }, {}, { signal })) {
    // Whatever the server sent has been received after these.
    for (let calls = 0; calls < 5; calls++) await channel.unary(count, {}, { signal, timeoutMs: 10_000 });
    assert.equal(decoded, seen.length);
    assert.ok(message.bytes >= 5);
    seen.push(message.read().devices[0]?.ID);
    assert.throws(() => message.read(), /decode message of \/test.Lists\/List: it was read before/);
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 20 }, (_, at) => String(at)),
  );
});

test("a message or an answer with more fields than its method allows is refused", async (t) => {
  const devices = Array.from({ length: 1000 }, () => ({}));
  const answer = ListAndWatchResponse.fromPartial({ devices });
  const unaryList = method("/test.Lists/Get", Empty, ListAndWatchResponse);
  const server = await new CriServer()
    .stream(list, (call) => {
      call.write(answer);
      call.end();
    })
    .unary(unaryList, (_call, callback) => callback(null, answer))
    .start();
  const channel = new GrpcChannel(`unix://${server.socket}`, undefined, { hasOwnConnection: true });
  t.after(() => server.stop());
  t.after(() => channel.close());
  const options = { signal, timeoutMs: 10_000 };
  const { value } = await channel.messages({ ...list, mostFields: 100 }, {}, { signal }).next();
  assert.throws(() => value?.read(), /decode message of \/test.Lists\/List: the message has more than 100 fields/);
  await assert.rejects(channel.unary({ ...unaryList, mostFields: 100 }, {}, options), /more than 100 fields/);
  assert.equal((await channel.unary({ ...unaryList, mostFields: 1000 }, {}, options)).devices.length, 1000);
});

test("of a server that sends without end only the message that is asked for is received", async (t) => {
  let sent = 0;
  const answer = ListAndWatchResponse.fromPartial({ devices: [{ ID: "x".repeat(100_000) }] });
  const server = await new CriServer()
    .stream(list, (call) => {
      const send = (): void => {
        sent++;
        call.write(answer, (error?: Error | null) => {
          if (error === null || error === undefined) send();
        });
      };
      send();
    })
    .unary(count, (_call, callback) => callback(null, {}))
    .start();
  const channel = new GrpcChannel(`unix://${server.socket}`, undefined, { hasOwnConnection: true });
  t.after(() => server.stop());
  t.after(() => channel.close());
  const messages = channel.messages(list, {}, { signal });
  await messages.next();
  // Long enough for all that the agent would receive.
  for (let calls = 0; calls < 100; calls++) await channel.unary(count, {}, { signal, timeoutMs: 10_000 });
  assert.ok(sent <= 3, `${sent} messages were sent`);
  await messages.return();
});

test("calls in flight end as ever when their channel is closed, and fail at once when it is aborted", async (t) => {
  const answers: (() => void)[] = [];
  let begun: () => void = () => undefined;
  const server = await new CriServer()
    .stream(list, () => begun())
    .unary(count, (_call, callback) => {
      answers.push(() => callback(null, {}));
      begun();
    })
    .start();
  t.after(() => server.stop());
  const open = async (call: (channel: GrpcChannel) => Promise<unknown>): Promise<[GrpcChannel, Promise<unknown>]> => {
    const channel = new GrpcChannel(`unix://${server.socket}`, undefined, { hasOwnConnection: true });
    t.after(() => channel.abort());
    const started = new Promise<void>((resolve) => (begun = resolve));
    const outcome = call(channel).then(
      () => "answered",
      (error: unknown) => error,
    );
    await started;
    return [channel, outcome];
  };
  const unary = (channel: GrpcChannel): Promise<unknown> => channel.unary(count, {}, { signal, timeoutMs: 60_000 });
  const [closed, answered] = await open(unary);
  closed.close();
  answers.pop()?.();
  assert.equal(await answered, "answered");
  for (const call of [unary, (channel: GrpcChannel) => channel.stream(list, {}, { signal }).next()]) {
    const [aborted, failed] = await open(call);
    aborted.abort();
    assert.match(String(await failed), /Cancelled on client/);
  }
});

test("nothing is kept of calls that have ended: a channel to the runtime makes millions", async (t) => {
  const server = await new CriServer()
    .stream(list, (call) => call.end())
    .unary(count, (_call, callback) => callback(null, {}))
    .start();
  const channel = new GrpcChannel(`unix://${server.socket}`, undefined, { hasOwnConnection: true });
  t.after(() => server.stop());
  t.after(() => channel.close());
  const stop = new AbortController();
  await channel.unary(count, {}, { signal: stop.signal, timeoutMs: 10_000 });
  await channel.stream(list, {}, { signal: stop.signal }).next();
  const { size } = Reflect.get(channel, "cancels") as Set<unknown>; // reason: the field is private
  assert.deepEqual([size, getEventListeners(stop.signal, "abort").length], [0, 0]);
});
