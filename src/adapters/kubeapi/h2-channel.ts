import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock, Timer } from "../../lib/clock.ts";
import {
  type Channel,
  ConnectionLost,
  plainHeaders,
  type WholeAnswer,
  type WireAnswer,
  type WireRequest,
  wholePath,
} from "./wire.ts";

/** Streams that are never used: the server may count a closed stream longer than we do, and a request over its limit hangs. */
const SPARE_STREAMS = 5;
/** Upper limit of streams on one connection, whatever the server allows. */
const MOST_STREAMS = 250;
/** Time without data after which a ping is sent, and the timeout of its answer. */
const SILENCE_MS = 30_000;
const PING_LIMIT_MS = 15_000;
/** Large lists come in a few round trips; only what is on its way is ever buffered. */
const STREAM_WINDOW = 1 << 20;
const SESSION_WINDOW = 4 << 20;
const SESSION_MEMORY_MB = 64;

export interface H2Options {
  readonly clock: Clock;
  /** The base URL, for the `:authority` header. */
  readonly server: URL;
  /** Called when a stream becomes available or the connection ends. */
  readonly onChange: () => void;
}

/**
 * One HTTP/2 connection.
 *
 *   open ──drain(), GOAWAY(0), suspect()──► draining ──last stream ends──► closed
 *     └───────── error, GOAWAY(other), no pong, destroy() ───────────────────▲
 */
export class H2Channel implements Channel {
  private readonly streams = new Set<ClientHttp2Stream>();
  private isDraining = false;
  private isClosed = false;
  private watchdog: Timer | undefined;
  private pong: Timer | undefined;
  private heardBytes = 0;
  private heardAt: number;

  private constructor(
    private readonly session: ClientHttp2Session,
    private readonly socket: TLSSocket,
    private readonly options: H2Options,
  ) {
    this.heardAt = options.clock.now().mono;
    session.on("error", () => this.close());
    session.on("close", () => this.close());
    // Node itself lets a session drain at code 0 and destroys it at any other.
    session.on("goaway", (code: number, lastStreamId: number) => this.hearGoaway(code, lastStreamId));
    this.watch();
  }

  /** Resolves when the server has sent its settings. The channel owns the socket from here on. */
  static open(socket: TLSSocket, options: H2Options, { signal }: Abortable): Promise<H2Channel> {
    const session = connect(options.server.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
      maxSessionMemory: SESSION_MEMORY_MB,
    });
    session.on("error", () => undefined);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => fail(signal.reason as Error);
      const onClose = (): void => fail(new Error("connection was closed before the server sent its settings"));
      const fail = (error: Error): void => {
        signal.removeEventListener("abort", onAbort);
        session.off("close", onClose);
        session.destroy();
        reject(error);
      };
      session.once("error", fail);
      session.once("close", onClose);
      session.once("remoteSettings", () => {
        signal.removeEventListener("abort", onAbort);
        session.off("close", onClose).off("error", fail);
        session.setLocalWindowSize(SESSION_WINDOW);
        resolve(new H2Channel(session, socket, options));
      });
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
  }

  get room(): number {
    if (this.isDraining || this.isClosed || this.session.closed || this.session.destroyed) return 0;
    const allowed = this.session.remoteSettings.maxConcurrentStreams ?? MOST_STREAMS;
    return Math.max(0, Math.min(MOST_STREAMS, allowed - Math.min(SPARE_STREAMS, allowed >> 1)) - this.streams.size);
  }

  get isIdle(): boolean {
    return this.streams.size === 0;
  }

  send(request: WireRequest, { signal }: Abortable): Promise<WireAnswer> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const stream = this.begin(request);
      let answered = false;
      const onAbort = (): void => void stream.destroy(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
      stream.once("response", (headers) => {
        answered = true;
        const isCut = (): boolean => stream.rstCode !== constants.NGHTTP2_NO_ERROR;
        resolve({ status: headers[":status"] ?? 0, headers: plainHeaders(headers), body: stream, isCut });
      });
      stream.on("error", (error) => {
        if (!answered) reject(signal.aborted ? signal.reason : this.lost(stream, error));
      });
      stream.once("close", () => {
        signal.removeEventListener("abort", onAbort);
        this.streams.delete(stream);
        if (!answered) reject(signal.aborted ? signal.reason : this.lost(stream, undefined));
        this.settle();
      });
    });
  }

  async readAll(
    { paths, headers }: { readonly paths: readonly string[]; readonly headers: WireRequest["headers"] },
    { signal }: Abortable,
  ): Promise<readonly (WholeAnswer | undefined)[]> {
    signal.throwIfAborted();
    const streams: ClientHttp2Stream[] = [];
    const answers = paths.slice(0, this.room).map((path) => {
      const stream = this.begin({ method: "GET", path, headers });
      streams.push(stream);
      return this.whole(stream);
    });
    // One listener for all: with few requests a minute it is the number of steps that costs, not the bytes.
    const onAbort = (): void => {
      for (const stream of streams) stream.destroy();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.all(answers);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  private whole(stream: ClientHttp2Stream): Promise<WholeAnswer | undefined> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let [status, isEnded] = [0, false];
      stream.once("response", (headers) => {
        status = headers[":status"] ?? 0;
      });
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.once("end", () => {
        isEnded = true;
      });
      stream.on("error", () => undefined);
      stream.once("close", () => {
        this.streams.delete(stream);
        this.settle();
        const isWhole = isEnded && status !== 0 && stream.rstCode === constants.NGHTTP2_NO_ERROR;
        resolve(isWhole ? { status, body: Buffer.concat(chunks) } : undefined);
      });
    });
  }

  drain(): void {
    this.isDraining = true;
    this.settle();
  }

  get heard(): number {
    return this.socket.bytesRead;
  }

  suspect(heard: number): void {
    if (this.isClosed || this.heard !== heard) return;
    this.isDraining = true;
    this.ping();
    this.options.onChange();
  }

  check(): void {
    this.ping();
  }

  /** Always with an error: without one Node ends the streams as if they were complete. */
  destroy(reason = new Error("connection was closed by the client")): void {
    this.session.destroy(reason);
    this.close();
  }

  private begin({ method, path, headers, body }: WireRequest): ClientHttp2Stream {
    let stream: ClientHttp2Stream;
    try {
      const all = { ...headers, ":method": method, ":path": wholePath(this.options.server, path) };
      // The type requires mutable lists; nothing changes them.
      stream = this.session.request(all as Record<string, string | string[]>, { endStream: body === undefined });
    } catch (error) {
      throw new ConnectionLost("connection was closed", { mayHaveBegun: false, cause: error });
    }
    this.streams.add(stream);
    if (body !== undefined) stream.end(body);
    return stream;
  }

  private lost(stream: ClientHttp2Stream, cause: Error | undefined): ConnectionLost {
    const refused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || stream.id === undefined;
    const message = cause?.message ?? "connection was closed before the response";
    return new ConnectionLost(message, { mayHaveBegun: !refused, cause });
  }

  /** Fails the requests that the server has not processed, instead of waiting for responses that never come. */
  private hearGoaway(code: number, lastStreamId: number): void {
    this.isDraining = true;
    if (code === constants.NGHTTP2_NO_ERROR) {
      for (const stream of this.streams) {
        if ((stream.id ?? 0) > lastStreamId) stream.close(constants.NGHTTP2_REFUSED_STREAM);
      }
    }
    this.options.onChange();
    this.settle();
  }

  private settle(): void {
    if (this.isDraining && this.streams.size === 0) {
      this.session.close();
      this.close();
    } else this.options.onChange();
  }

  /** Records whether data was received since the last check. */
  private listen(): void {
    const bytes = this.socket.bytesRead;
    if (bytes === this.heardBytes) return;
    this.heardBytes = bytes;
    this.heardAt = this.options.clock.now().mono;
  }

  private watch(): void {
    this.watchdog = this.options.clock.after(SILENCE_MS / 2, () => {
      this.listen();
      if (this.options.clock.now().mono - this.heardAt >= SILENCE_MS) this.ping();
      this.watch();
    });
  }

  private ping(): void {
    if (this.pong !== undefined || this.isClosed || this.session.destroyed) return;
    this.pong = this.options.clock.after(PING_LIMIT_MS, () => {
      this.destroy(new Error("connection timed out: no response to ping"));
    });
    const onPong = (): void => {
      this.pong?.cancel();
      this.pong = undefined;
    };
    try {
      if (!this.session.ping(onPong)) this.destroy();
    } catch {
      this.destroy();
    }
  }

  private close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.isDraining = true;
    this.watchdog?.cancel();
    this.pong?.cancel();
    this.options.onChange();
  }
}
