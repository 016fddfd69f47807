import { closeSync } from "node:fs";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import type { Clock } from "../../lib/clock.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import { FdSocket } from "./fd-socket.ts";
import { type BusMessage, decodeMessage, encodeMessage, messageLength } from "./message.ts";
import type { BusValue } from "./values.ts";

/** Longer messages end the connection: nothing that the agent asks for comes near it. */
const LONGEST_MESSAGE = 1024 * 1024;
/** How long a call may take, in milliseconds, as in D-Bus' own library. */
const CALL_MS = 25_000;
const DEFAULT_SOCKET = "/run/dbus/system_bus_socket";
const ERROR_BYTES = 512;
/** Descriptors that were received and that no message has claimed: logind sends one at a time. */
const MOST_FDS = 64;
const BUS = { destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus" };

/** What is called. */
export interface BusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly body?: readonly BusValue[];
}

/** Which signals are listened for: those of the owner of a name, or those that anybody on the bus may send. */
export interface SignalMatch {
  /** Undefined for signals of anybody. */
  readonly sender: string | undefined;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
}

/** What a call returned. The descriptors belong to the caller. */
export interface BusReply {
  readonly body: readonly BusValue[];
  readonly fds: readonly number[];
}

interface Pending {
  resolve(reply: BusReply): void;
  reject(error: Error): void;
}

/** The socket of the system's bus. */
export function systemBusSocket(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = /^unix:path=([^,;]+)/.exec(env["DBUS_SYSTEM_BUS_ADDRESS"] ?? "")?.[1];
  return given ?? DEFAULT_SOCKET;
}

/** A connection to a message bus, as root or whoever runs the agent. */
export class MessageBus {
  private readonly pending = new Map<number, Pending>();
  private readonly listeners = new Set<(signal: BusMessage) => void>();
  private serial = 0;
  private unread: Buffer = Buffer.alloc(0);
  private readonly fds: number[] = [];
  private handshake: ((line: string) => void) | undefined;
  private socket: FdSocket | undefined;
  private end: (error: Error) => void = () => undefined;

  private constructor(private readonly clock: Clock) {}

  /** Rejects once the connection is lost. */
  readonly closed = new Promise<never>((_, reject) => {
    this.end = reject;
  });

  /** Connects and introduces itself; rejects if the bus is not there. */
  static async connect(path: string, { clock, signal }: Abortable & { readonly clock: Clock }): Promise<MessageBus> {
    const bus = new MessageBus(clock);
    // Whoever waits for it sees it; nobody may be waiting yet.
    bus.closed.catch(() => undefined);
    bus.socket = await FdSocket.connect(path, {
      data: (bytes, fds) => bus.received(bytes, fds),
      closed: (error) => bus.lost(error ?? new Error("the bus closed the connection")),
    });
    const scope = new AbortScope([signal], { clock, ms: CALL_MS });
    try {
      await bus.authenticate(scope.signal);
      await bus.call({ ...BUS, member: "Hello" }, { signal });
      return bus;
    } catch (error) {
      bus.close();
      throw error;
    } finally {
      scope.dispose();
    }
  }

  /** Calls a method. Rejects with the error that it returned, after 25 s, or when the connection is lost. */
  async call(call: BusCall, { signal }: Abortable): Promise<BusReply> {
    const serial = ++this.serial;
    const scope = new AbortScope([signal], { clock: this.clock, ms: CALL_MS });
    try {
      const reply = new Promise<BusReply>((resolve, reject) => this.pending.set(serial, { resolve, reject }));
      this.socket?.send(encodeMessage({ type: "call", signature: "", body: [], ...call, serial }));
      return await Promise.race([orAborted(reply, scope.signal), this.closed]);
    } finally {
      this.pending.delete(serial);
      scope.dispose();
    }
  }

  /**
   * Calls `fn` with each matching signal of the sender from now on. The bus lets every user send signals of any name,
   * also to one receiver, past the rules: so the unique name of who sent it is compared, and followed when it changes.
   */
  async onSignal(match: SignalMatch, fn: (body: readonly BusValue[]) => void, options: Abortable): Promise<void> {
    const { sender } = match;
    if (sender === undefined) return this.onSignalOfAnyone(match, fn, options);
    const changed = { ...BUS, sender: BUS.destination, member: "NameOwnerChanged" };
    let owner: BusValue | undefined;
    this.listeners.add((signal) => {
      if (isOf(signal, changed) && signal.sender === changed.sender && signal.body[0] === sender)
        owner = signal.body[2] ?? "";
      else if (isOf(signal, match) && signal.sender !== undefined && signal.sender === owner) fn(signal.body);
    });
    await this.addMatch(`${ruleOf(changed)},arg0='${sender}'`, options);
    const named = { ...BUS, member: "GetNameOwner", signature: "s", body: [sender] };
    const { body } = await this.call(named, options);
    // It may have changed since.
    owner ??= body[0];
    await this.addMatch(ruleOf(match), options);
  }

  private async onSignalOfAnyone(
    match: SignalMatch,
    fn: (body: readonly BusValue[]) => void,
    options: Abortable,
  ): Promise<void> {
    this.listeners.add((signal) => {
      if (isOf(signal, match)) fn(signal.body);
    });
    await this.addMatch(ruleOf(match), options);
  }

  private addMatch(rule: string, options: Abortable): Promise<BusReply> {
    return this.call({ ...BUS, member: "AddMatch", signature: "s", body: [rule] }, options);
  }

  close(): void {
    this.socket?.close();
    this.lost(new Error("the connection was closed"));
  }

  private async authenticate(signal: AbortSignal): Promise<void> {
    const uid = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
    await this.ask(`\0AUTH EXTERNAL ${uid}\r\n`, /^OK /, signal);
    await this.ask("NEGOTIATE_UNIX_FD\r\n", /^AGREE_UNIX_FD/, signal);
    this.socket?.send(Buffer.from("BEGIN\r\n"));
  }

  /** Sends a line of the handshake and checks the answer. */
  private async ask(line: string, wanted: RegExp, signal: AbortSignal): Promise<void> {
    const answer = new Promise<string>((resolve) => {
      this.handshake = resolve;
    });
    this.socket?.send(Buffer.from(line));
    const text = await Promise.race([orAborted(answer, signal), this.closed]);
    this.handshake = undefined;
    if (!wanted.test(text)) throw new Error(`authenticate at the bus: ${clip(text, ERROR_BYTES)}`);
  }

  private received(bytes: Buffer, fds: readonly number[]): void {
    this.fds.push(...fds);
    this.unread = Buffer.concat([this.unread, bytes]);
    try {
      if (this.fds.length > MOST_FDS) throw new Error("read message: it has too many file descriptors");
      if (this.handshake !== undefined) this.takeLine();
      else this.takeMessages();
    } catch (error) {
      this.socket?.close();
      this.lost(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private takeLine(): void {
    const end = this.unread.indexOf("\r\n");
    if (end < 0) {
      if (this.unread.length > LONGEST_MESSAGE) throw new Error("authenticate at the bus: the answer is too long");
      return;
    }
    const line = this.unread.toString("latin1", 0, end);
    this.unread = this.unread.subarray(end + 2);
    this.handshake?.(line);
  }

  private takeMessages(): void {
    for (;;) {
      const length = messageLength(this.unread);
      if (length === undefined) return;
      if (length > LONGEST_MESSAGE) throw new Error(`read message of ${length} bytes: it is too long`);
      if (this.unread.length < length) return;
      const message = decodeMessage(this.unread.subarray(0, length));
      this.unread = this.unread.subarray(length);
      this.take(message, this.fds.splice(0, message.fds ?? 0));
    }
  }

  private take(message: BusMessage, fds: readonly number[]): void {
    const pending = this.pending.get(message.replySerial ?? 0);
    if (message.type === "return" && pending !== undefined) return pending.resolve({ body: message.body, fds });
    // Nobody takes them: a signal, or the answer to a call that was given up.
    for (const fd of fds) closeSync(fd);
    if (message.type === "error") pending?.reject(new Error(errorText(message)));
    else if (message.type === "signal") for (const listener of [...this.listeners]) listener(message);
  }

  private lost(error: Error): void {
    for (const fd of this.fds.splice(0)) closeSync(fd);
    this.end(error);
  }
}

function isOf(signal: BusMessage, match: SignalMatch): boolean {
  return signal.path === match.path && signal.interface === match.interface && signal.member === match.member;
}

function ruleOf({ sender, path, interface: of, member }: SignalMatch): string {
  const from = sender === undefined ? "" : `sender='${sender}',`;
  return `type='signal',${from}path='${path}',interface='${of}',member='${member}'`;
}

function errorText({ errorName = "error", body }: BusMessage): string {
  const text = typeof body[0] === "string" ? `${errorName}: ${body[0]}` : errorName;
  return clip(text, ERROR_BYTES);
}
