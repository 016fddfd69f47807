import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FdSocket } from "../../src/adapters/dbus/fd-socket.ts";
import { type BusMessage, decodeMessage, encodeMessage, messageLength } from "../../src/adapters/dbus/message.ts";
import type { BusValue } from "../../src/adapters/dbus/values.ts";

const LOGIND = "org.freedesktop.login1";
const SYSTEMD = "org.freedesktop.systemd1";
const MANAGER = "org.freedesktop.login1.Manager";

/** A login manager on a private bus: it hands out locks, announces shutdowns and counts what it was asked. */
export class FakeLogind {
  delayMs = 5000;
  /** What the delay becomes when logind is told to read its configuration. */
  delayAfterReloadMs = 5000;
  isShuttingDown = false;
  /** Locks that were handed out, and those of them that are held. */
  inhibits = 0;
  held = 0;
  reloads = 0;
  private unread: Buffer = Buffer.alloc(0);
  private serial = 100;
  private line: ((text: string) => void) | undefined;
  private socket: FdSocket | undefined;
  private readonly replies = new Map<number, () => void>();

  /** Connects to the bus and takes the names of logind and systemd. */
  static async start(path: string): Promise<FakeLogind> {
    const logind = new FakeLogind();
    logind.socket = await FdSocket.connect(path, { data: (bytes) => logind.data(bytes), closed: () => undefined });
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
    await logind.say(`\0AUTH EXTERNAL ${uid}\r\n`);
    await logind.say("NEGOTIATE_UNIX_FD\r\n");
    logind.line = undefined;
    logind.socket.send(Buffer.from("BEGIN\r\n"));
    await logind.ask("Hello");
    for (const name of [LOGIND, SYSTEMD]) await logind.ask("RequestName", "su", [name, 0]);
    return logind;
  }

  /** Announces a shutdown, or that one was cancelled. */
  announce(isShuttingDown: boolean): void {
    this.isShuttingDown = isShuttingDown;
    this.send({
      type: "signal",
      path: "/org/freedesktop/login1",
      interface: MANAGER,
      member: "PrepareForShutdown",
      signature: "b",
      body: [isShuttingDown ? 1 : 0],
    });
  }

  close(): void {
    this.socket?.close();
  }

  private say(line: string): Promise<string> {
    const answer = new Promise<string>((resolve) => {
      this.line = resolve;
    });
    this.socket?.send(Buffer.from(line));
    return answer;
  }

  private ask(member: string, signature = "", body: readonly BusValue[] = []): Promise<void> {
    const to = {
      destination: "org.freedesktop.DBus",
      path: "/org/freedesktop/DBus",
      interface: "org.freedesktop.DBus",
    };
    return new Promise((resolve) => {
      this.replies.set(this.serial + 1, resolve);
      this.send({ type: "call", ...to, member, signature, body });
    });
  }

  private send(message: Omit<BusMessage, "serial">, fds: readonly number[] = []): void {
    this.socket?.send(
      encodeMessage({ ...message, serial: ++this.serial, ...(fds.length > 0 && { fds: fds.length }) }),
      fds,
    );
  }

  private data(bytes: Buffer): void {
    this.unread = Buffer.concat([this.unread, bytes]);
    if (this.line !== undefined) {
      const end = this.unread.indexOf("\r\n");
      if (end < 0) return;
      const text = this.unread.toString("latin1", 0, end);
      this.unread = this.unread.subarray(end + 2);
      return this.line(text);
    }
    for (;;) {
      const length = messageLength(this.unread);
      if (length === undefined || this.unread.length < length) return;
      const message = decodeMessage(this.unread.subarray(0, length));
      this.unread = this.unread.subarray(length);
      if (message.type === "return") this.replies.get(message.replySerial ?? 0)?.();
      if (message.type === "call") this.serve(message);
    }
  }

  private serve({ member, serial, sender = "", body }: BusMessage): void {
    const reply = (signature: string, values: readonly BusValue[], fds: readonly number[] = []): void =>
      this.send({ type: "return", replySerial: serial, destination: sender, signature, body: values }, fds);
    if (member === "Get" && body[1] === "InhibitDelayMaxUSec")
      return reply("v", [{ signature: "t", value: BigInt(this.delayMs * 1000) }]);
    if (member === "Get") return reply("v", [{ signature: "b", value: this.isShuttingDown ? 1 : 0 }]);
    if (member === "Inhibit") {
      const fd = this.newLock();
      reply("h", [0], [fd]);
      return closeSync(fd);
    }
    if (member === "KillUnit") {
      this.reloads++;
      this.delayMs = this.delayAfterReloadMs;
    }
    reply("", []);
  }

  /** The writing end of a pipe: it is released when nobody has it open any more, as with logind. */
  private newLock(): number {
    const dir = mkdtempSync(join(tmpdir(), "lock-"));
    const path = join(dir, "fifo");
    execFileSync("mkfifo", [path]);
    const reading = new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK) });
    const fd = openSync(path, constants.O_WRONLY);
    rmSync(dir, { recursive: true });
    this.inhibits++;
    this.held++;
    reading.on("error", () => undefined);
    reading.on("end", () => void this.held--).resume();
    return fd;
  }
}
