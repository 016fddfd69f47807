import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { Logind } from "./logind.ts";
import { type BusMessage, decodeMessage, encodeMessage, messageLength } from "./message.ts";

const { signal } = new AbortController();
const OWNER = ":1.2";

/** A bus of one connection, which answers what the bus itself is asked. */
class FakeBus {
  readonly path: string;
  readonly rules: string[] = [];
  private onAsked: () => void = () => undefined;
  /** Resolves with the first bytes that arrive. */
  readonly asked = new Promise<void>((resolve) => {
    this.onAsked = resolve;
  });
  private readonly server = createServer((socket) => this.serve(socket));
  private socket: Socket | undefined;
  private unread: Buffer = Buffer.alloc(0);
  private serial = 0;

  constructor(
    t: TestContext,
    private readonly options: { readonly isMute?: boolean } = {},
  ) {
    const directory = mkdtempSync(join(tmpdir(), "fake-bus-"));
    this.path = join(directory, "bus");
    t.after(() => {
      this.socket?.destroy();
      this.server.close();
      rmSync(directory, { recursive: true });
    });
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.server.listen(this.path, resolve));
  }

  announce(sender: string, isActive: boolean): void {
    const match = { path: "/org/freedesktop/login1", interface: "org.freedesktop.login1.Manager" };
    const body = [isActive ? 1 : 0];
    this.send({ type: "signal", ...match, member: "PrepareForShutdown", sender, signature: "b", body });
  }

  rename(sender: string, owner: string): void {
    const names = { path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "NameOwnerChanged" };
    const body = ["org.freedesktop.login1", "", owner];
    this.send({ type: "signal", ...names, sender, signature: "sss", body });
  }

  send(message: Omit<BusMessage, "serial">): void {
    this.socket?.write(encodeMessage({ ...message, serial: ++this.serial }));
  }

  private serve(socket: Socket): void {
    this.socket = socket;
    let isBinary = false;
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      this.onAsked();
      if (this.options.isMute === true) return;
      this.unread = Buffer.concat([this.unread, bytes]);
      for (let end = this.unread.indexOf("\r\n"); !isBinary && end >= 0; end = this.unread.indexOf("\r\n")) {
        const line = this.unread.toString("latin1", 0, end);
        this.unread = this.unread.subarray(end + 2);
        if (line === "BEGIN") isBinary = true;
        else socket.write(line.includes("AUTH") ? "OK 1234\r\n" : "AGREE_UNIX_FD\r\n");
      }
      if (isBinary) this.answer();
    });
  }

  private answer(): void {
    for (;;) {
      const length = messageLength(this.unread);
      if (length === undefined || this.unread.length < length) return;
      const { serial, member, body } = decodeMessage(this.unread.subarray(0, length));
      this.unread = this.unread.subarray(length);
      if (member === "AddMatch") this.rules.push(String(body[0]));
      const answer = { Hello: ":1.7", GetNameOwner: OWNER }[member ?? ""];
      const values = answer === undefined ? { signature: "", body: [] } : { signature: "s", body: [answer] };
      this.send({ type: "return", replySerial: serial, ...values });
    }
  }
}

test("a shutdown counts only if logind itself announces it, also after it was started again", async (t) => {
  const bus = new FakeBus(t);
  await bus.listen();
  const logind = await Logind.connect({ clock: new FakeClock(), signal, socket: bus.path });
  t.after(() => logind.close());
  const seen: boolean[] = [];
  let next: () => void = () => undefined;
  const heard = (isActive: boolean): void => {
    seen.push(isActive);
    next();
  };
  const arrives = (): Promise<void> =>
    new Promise((resolve) => {
      next = resolve;
    });
  await logind.onShutdown(heard, { signal });
  assert.ok(bus.rules.some((rule) => rule.includes("sender='org.freedesktop.login1'")));
  let arrived = arrives();
  bus.announce(":1.66", true);
  bus.rename(":1.66", ":1.66");
  bus.announce(":1.66", true);
  bus.announce(OWNER, false);
  await arrived;
  assert.deepEqual(seen, [false], "not that of another client of the bus");
  arrived = arrives();
  bus.rename("org.freedesktop.DBus", "");
  bus.rename("org.freedesktop.DBus", ":1.9");
  bus.announce(OWNER, true);
  bus.announce(":1.9", true);
  await arrived;
  assert.deepEqual(seen, [false, true]);
});

test("whoever asks for it gets the announcements of anybody, as with Kubernetes", async (t) => {
  const bus = new FakeBus(t);
  await bus.listen();
  const logind = await Logind.connect({ clock: new FakeClock(), signal, socket: bus.path, trustsAnyone: true });
  t.after(() => logind.close());
  const heard = new Promise<boolean>((resolve) => {
    logind.onShutdown(resolve, { signal }).then(() => bus.announce(":1.66", true), assert.fail);
  });
  assert.equal(await heard, true);
  assert.equal(
    bus.rules.some((rule) => rule.includes("sender=")),
    false,
  );
});

test("a bus that accepts connections and never answers is given up", async (t) => {
  const bus = new FakeBus(t, { isMute: true });
  await bus.listen();
  const clock = new FakeClock();
  const connected = Logind.connect({ clock, signal, socket: bus.path });
  const rejected = assert.rejects(connected, /25/);
  await bus.asked;
  await clock.advance(25_000);
  await rejected;
});
