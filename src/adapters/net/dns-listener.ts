import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import { type Abortable, manyListeners } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { FairShare } from "../../lib/fair-share.ts";
import { bindTcp } from "./listen.ts";
import { ListenError } from "./listen-error.ts";

/** How a message came. */
export interface DnsTransport extends Abortable {
  readonly isTcp: boolean;
  /** The address of the client. */
  readonly client: string;
}

/** Answers one DNS message; undefined, or a rejection: no answer. */
export type DnsResponder = (message: Buffer, options: DnsTransport) => Promise<Buffer | undefined>;

/** Connections by TCP at a time, over all clients; one of them has a part of what is left. */
const MAX_CONNECTIONS = 256;
/** A connection without a message ends after this long, in milliseconds. */
const IDLE_MS = 10_000;
/** Messages of one connection that are answered at a time. */
const MAX_PENDING = 32;
/** Bytes of answers that wait for one connection: who asks and does not read must not fill the memory. */
const MAX_UNREAD_BYTES = 256 * 1024;

/** A DNS server on UDP and TCP of one address. */
export class DnsListener {
  private readonly stop = manyListeners();
  private readonly connections = new Set<Socket>();
  private readonly share = new FairShare(MAX_CONNECTIONS);

  private constructor(
    private readonly sockets: { readonly udp: DatagramSocket; readonly tcp: Server },
    private readonly respond: DnsResponder,
  ) {
    const { udp, tcp } = sockets;
    udp.on("message", (message, from) => {
      const options = { signal: this.stop.signal, isTcp: false, client: from.address };
      void this.answer(message, options).then((answer) => {
        // Anybody can send a datagram from port 0, and nobody can be answered there.
        if (answer === undefined || from.port === 0 || this.stop.signal.aborted) return;
        // A client that is gone is no error of ours.
        udp.send(answer, from.port, from.address, () => undefined);
      });
    });
    udp.on("error", () => undefined);
    tcp.on("connection", (socket: Socket) => this.serve(socket));
    tcp.on("error", () => undefined);
  }

  /** Binds both; rejects with `ListenError`. Nothing is answered before `respond` is ready to be called. */
  static async open(at: { readonly host: string; readonly port: number }, respond: DnsResponder): Promise<DnsListener> {
    const tcp = createServer();
    tcp.maxConnections = MAX_CONNECTIONS;
    const { port } = await bindTcp(tcp, at);
    const udp = createSocket("udp4");
    try {
      await new Promise<void>((resolve, reject) => {
        udp.once("error", reject);
        udp.bind({ address: at.host, port, exclusive: true }, () => {
          udp.off("error", reject);
          resolve();
        });
      });
    } catch (cause) {
      tcp.close();
      udp.close();
      throw new ListenError("InUse", `UDP port ${port} of ${at.host}: ${messageOf(cause)}`, { cause });
    }
    return new DnsListener({ udp, tcp }, respond);
  }

  get port(): number {
    return this.sockets.udp.address().port;
  }

  async close(): Promise<void> {
    this.stop.abort();
    for (const socket of this.connections) socket.destroy();
    await Promise.all([
      new Promise<void>((resolve) => this.sockets.udp.close(() => resolve())),
      new Promise<void>((resolve) => this.sockets.tcp.close(() => resolve())),
    ]);
  }

  private serve(socket: Socket): void {
    const client = socket.remoteAddress ?? "";
    const release = this.share.take(client);
    if (release === undefined) {
      socket.destroy();
      return;
    }
    this.connections.add(socket);
    let kept = Buffer.alloc(0);
    let pending = 0;
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on("close", () => {
      release();
      this.connections.delete(socket);
    });
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      kept = Buffer.concat([kept, chunk]);
      while (kept.length >= 2 && kept.length >= 2 + kept.readUInt16BE(0)) {
        const size = kept.readUInt16BE(0);
        const message = Buffer.from(kept.subarray(2, 2 + size));
        kept = kept.subarray(2 + size);
        if (++pending > MAX_PENDING) {
          socket.destroy();
          return;
        }
        void this.answer(message, { signal: this.stop.signal, isTcp: true, client }).then((answer) => {
          pending--;
          if (answer === undefined || socket.destroyed) return;
          if (socket.writableLength > MAX_UNREAD_BYTES) {
            socket.destroy();
            return;
          }
          const length = Buffer.alloc(2);
          length.writeUInt16BE(answer.length);
          socket.write(Buffer.concat([length, answer]));
        });
      }
    });
  }

  /** Never rejects: nobody hears it, and one message must not end the agent. */
  private answer(message: Buffer, options: DnsTransport): Promise<Buffer | undefined> {
    return this.respond(message, options).catch(() => undefined);
  }
}
