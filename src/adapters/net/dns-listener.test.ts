import assert from "node:assert/strict";
import type { Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { DnsListener, type DnsResponder } from "./dns-listener.ts";

async function listen(t: TestContext, respond: DnsResponder): Promise<DnsListener> {
  const listener = await DnsListener.open({ host: "127.0.0.1", port: 0 }, respond);
  t.after(() => listener.close());
  return listener;
}

/** Rejections that nobody hears end the agent. */
function unheard(t: TestContext): unknown[] {
  const heard: unknown[] = [];
  const note = (error: unknown): void => void heard.push(error);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  return heard;
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** Delivers a datagram as the kernel does: only a raw socket can send from port 0. */
function deliver(listener: DnsListener, message: Buffer, port: number): void {
  const { udp } = Reflect.get(listener, "sockets") as { readonly udp: DatagramSocket };
  udp.emit("message", message, { address: "127.0.0.1", family: "IPv4", port, size: message.length });
}

test("a datagram from port 0 gets no answer and does no harm", async (t) => {
  const heard = unheard(t);
  let asked = 0;
  const listener = await listen(t, async (message) => {
    asked++;
    return message;
  });
  deliver(listener, Buffer.alloc(12), 0);
  await turns();
  assert.equal(asked, 1);
  assert.deepEqual(heard, []);
});

test("an answer that fails, or comes after the end, does no harm", async (t) => {
  const heard = unheard(t);
  let release: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    release = resolve;
  });
  const listener = await DnsListener.open({ host: "127.0.0.1", port: 0 }, async (message) => {
    if (message.length === 1) throw new RangeError("a bug");
    await late;
    return message;
  });
  deliver(listener, Buffer.alloc(1), 5353);
  deliver(listener, Buffer.alloc(12), 5353);
  await turns();
  await listener.close();
  release();
  await turns();
  assert.deepEqual(heard, []);
});

test("a client that asks and never reads is cut off", async (t) => {
  let answered = 0;
  const listener = await listen(t, async () => {
    answered++;
    return Buffer.alloc(60_000);
  });
  const socket = connect({ host: "127.0.0.1", port: listener.port });
  t.after(() => socket.destroy());
  let isOver = false;
  socket.on("error", () => {
    isOver = true;
  });
  await once(socket, "connect");
  // One after the other; the kernel's buffers take some megabytes first.
  for (let sent = 0; sent < 2000 && !isOver; sent++) {
    socket.write(Buffer.from([0, 1, 0]));
    // One that is cut off gets no answer, and hears of it by the next question.
    for (let turn = 0; turn < 50 && answered <= sent && !isOver; turn++) await turns();
  }
  assert.ok(isOver, `${answered} answers of 60 kB were kept for a client that reads none`);
});

test("one client cannot take all connections", async (t) => {
  const listener = await listen(t, async (message) => message);
  const dial = async (localAddress: string) => {
    const socket = connect({ host: "127.0.0.1", port: listener.port, localAddress });
    socket.on("error", () => undefined);
    t.after(() => socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  await Promise.all(Array.from({ length: 256 }, () => dial("127.0.0.1")));
  const other = await dial("127.0.0.2");
  other.write(Buffer.from([0, 2, 7, 7]));
  const [answer] = (await once(other, "data")) as [Buffer];
  assert.deepEqual([...answer], [0, 2, 7, 7]);
});
