import { Agent, type ClientRequest, type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Abortable } from "../../lib/abort.ts";
import { type Channel, ConnectionLost, plainHeaders, type WireAnswer, type WireRequest, wholePath } from "./wire.ts";

/** Idle connections are kept this long for the next request: shorter than the keep-alive timeout of servers. */
const IDLE_CONNECTIONS = 4;
const IDLE_MS = 60_000;

export interface H1Options {
  readonly server: URL;
  readonly onChange: () => void;
  /** Another connection to the same server. */
  readonly dialAgain: () => Promise<Socket>;
}

/**
 * Many HTTP/1.1 connections that look like one channel, for a server or proxy without HTTP/2. Each
 * connection carries one request at a time, so a watch has one of its own.
 */
export class H1Channel implements Channel {
  private readonly agent: ReadyAgent;
  private readonly requests = new Set<ClientRequest>();
  private isDraining = false;

  /** `first` is the connection on which the protocol was agreed. */
  constructor(
    first: Socket,
    private readonly options: H1Options,
  ) {
    this.agent = new ReadyAgent(first, options.dialAgain);
  }

  get room(): number {
    return this.isDraining ? 0 : Number.POSITIVE_INFINITY;
  }

  get isIdle(): boolean {
    return this.requests.size === 0;
  }

  send(wire: WireRequest, { signal }: Abortable): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      // The type requires mutable lists; nothing changes them.
      const headers = { ...wire.headers, host: this.options.server.host } as OutgoingHttpHeaders;
      if (wire.body !== undefined) headers["content-length"] = Buffer.byteLength(wire.body);
      const sent = request({
        agent: this.agent,
        method: wire.method,
        path: wholePath(this.options.server, wire.path),
        headers,
      });
      this.requests.add(sent);
      let answer: IncomingMessage | undefined;
      const onAbort = (): void => {
        answer?.destroy(signal.reason as Error);
        sent.destroy(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      sent.on("response", (message) => {
        answer = message;
        message.on("error", () => undefined);
        resolve({
          status: message.statusCode ?? 0,
          headers: plainHeaders(message.headers),
          body: message,
          isCut: () => !message.complete,
        });
      });
      sent.on("error", (error) => {
        if (answer !== undefined) return;
        // A retry gets a new channel: the server may have moved, or use another protocol now.
        if (!signal.aborted && !sent.reusedSocket) this.drain();
        const mayHaveBegun = sent.socket !== null && sent.socket.bytesWritten > 0;
        reject(signal.aborted ? signal.reason : new ConnectionLost(error.message, { mayHaveBegun, cause: error }));
      });
      sent.on("close", () => {
        signal.removeEventListener("abort", onAbort);
        this.requests.delete(sent);
        if (this.isDraining && this.isIdle) this.agent.destroy();
        this.options.onChange();
      });
      sent.end(wire.body);
    });
  }

  drain(): void {
    this.isDraining = true;
    if (this.isIdle) this.agent.destroy();
    this.options.onChange();
  }

  readonly heard = 0;

  /** Does nothing: each request has a connection of its own, which its timeout closes. */
  suspect(): void {}

  /** Does nothing: a watch ends with its timeoutSeconds. */
  check(): void {}

  destroy(): void {
    this.isDraining = true;
    for (const sent of this.requests) sent.destroy();
    this.agent.destroy();
    this.options.onChange();
  }
}

/** Returns the connection that is open already to the first caller, and dials for the others. */
class ReadyAgent extends Agent {
  private ready: Socket | undefined;

  constructor(
    first: Socket,
    private readonly dialAgain: () => Promise<Socket>,
  ) {
    super({ keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS, timeout: IDLE_MS });
    this.ready = first;
    first.once("close", () => {
      if (this.ready === first) this.ready = undefined;
    });
  }

  override createConnection(_options: unknown, give: (error: Error | null, stream: Duplex) => void): undefined {
    void this.connection().then(give.bind(undefined, null), (error: Error) => {
      // The second argument is ignored if there is an error.
      (give as (error: Error) => void)(error);
    });
    return undefined;
  }

  private async connection(): Promise<Socket> {
    const ready = this.ready;
    this.ready = undefined;
    return ready !== undefined && !ready.destroyed ? ready : this.dialAgain();
  }

  override destroy(): void {
    this.ready?.destroy();
    super.destroy();
  }
}
