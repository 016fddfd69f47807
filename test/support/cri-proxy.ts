import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** How a runtime refuses a call. */
export interface CallError {
  /** The number of a gRPC code; 2 is `Unknown`, which runtimes use for errors of their own. */
  readonly code: number;
  readonly message: string;
}

/** What the runtime answered to one call. */
interface Answer {
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: OutgoingHttpHeaders;
}

const MESSAGE_HEADERS = { ":status": 200, "content-type": "application/grpc" };

/** Stands before the socket of a runtime, hands on every call, and treats some as a test wants. Methods by name. */
export class CriProxy {
  private readonly dir = mkdtempSync(join(tmpdir(), "kts-prx-"));
  readonly socket = join(this.dir, "s");
  readonly endpoint = `unix://${this.socket}`;
  /** Decides that the runtime is not asked, and how it would have refused. */
  refuse: (method: string) => CallError | undefined = () => undefined;
  /** Decides that the runtime is not asked, and what it would have answered. */
  answer: (method: string) => Uint8Array | undefined = () => undefined;
  /**
   * Decides that the answer of the runtime is kept until the promise resolves. The call is one that the runtime
   * completes, also when its caller has given it up.
   */
  hold: (method: string) => Promise<void> | undefined = () => undefined;
  /** Calls of each method. */
  readonly calls = new Map<string, number>();
  /** Answers that are kept, and calls that their callers gave up, by method. */
  readonly held = new Map<string, number>();
  readonly givenUp = new Map<string, number>();
  private readonly server: Http2Server = createServer();
  private readonly near = new Set<ServerHttp2Session>();
  private far: ClientHttp2Session | undefined;

  private constructor(private readonly runtime: string) {
    this.server.on("session", (session) => {
      this.near.add(session.on("error", () => undefined));
      session.on("close", () => this.near.delete(session));
    });
    this.server.on("stream", (near, headers) => this.handle(near, headers));
  }

  static async start(runtimeSocket: string): Promise<CriProxy> {
    const proxy = new CriProxy(runtimeSocket);
    await new Promise<void>((resolve, reject) => {
      proxy.server.once("error", reject).listen(proxy.socket, resolve);
    });
    return proxy;
  }

  /** Every call is handed on from now on. */
  heal(): void {
    this.refuse = () => undefined;
    this.answer = () => undefined;
    this.hold = () => undefined;
  }

  async stop(): Promise<void> {
    for (const session of this.near) session.destroy();
    this.far?.destroy();
    await new Promise((resolve) => this.server.close(resolve));
    await rm(this.dir, { recursive: true, force: true });
  }

  private handle(near: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const method = (headers[":path"] ?? "").split("/").at(-1) ?? "";
    near.on("error", () => undefined);
    count(this.calls, method);
    const refused = this.refuse(method);
    if (refused !== undefined) {
      near.resume();
      near.respond(errorHeaders(refused), { endStream: true });
      return;
    }
    const answer = this.answer(method);
    if (answer !== undefined) {
      near.resume();
      respond(near, { headers: MESSAGE_HEADERS, body: framed(answer), trailers: { "grpc-status": "0" } });
      return;
    }
    const far = this.session().request({ ...headers, ":authority": "localhost" }, { endStream: false });
    far.on("error", () => near.close(constants.NGHTTP2_INTERNAL_ERROR));
    near.pipe(far);
    const held = this.hold(method);
    if (held === undefined) passOn(near, far);
    else void this.keep(method, { near, far }, held);
  }

  /** Collects the whole answer, and hands it on once it may. */
  private async keep(
    method: string,
    { near, far }: { near: ServerHttp2Stream; far: ClientHttp2Stream },
    held: Promise<void>,
  ): Promise<void> {
    near.on("aborted", () => count(this.givenUp, method));
    const answer = await collect(far);
    count(this.held, method);
    await held;
    respond(near, answer);
  }

  private session(): ClientHttp2Session {
    if (this.far === undefined || this.far.destroyed || this.far.closed) {
      this.far = connect("http://localhost", { createConnection: () => connectSocket(this.runtime) });
      this.far.on("error", () => undefined);
    }
    return this.far;
  }
}

function passOn(near: ServerHttp2Stream, far: ClientHttp2Stream): void {
  let trailers: IncomingHttpHeaders = {};
  near.on("aborted", () => far.close(constants.NGHTTP2_CANCEL));
  far.on("response", (headers, flags) => {
    if (near.destroyed) return;
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) return near.respond(headers, { endStream: true });
    near.respond(headers, { waitForTrailers: true });
    near.on("wantTrailers", () => near.sendTrailers(trailers));
    far.pipe(near);
  });
  far.on("trailers", (found) => {
    trailers = found;
  });
}

function collect(far: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve) => {
    let [headers, trailers]: IncomingHttpHeaders[] = [{}, {}];
    const chunks: Buffer[] = [];
    far.on("response", (found) => (headers = found));
    far.on("trailers", (found) => (trailers = found));
    far.on("data", (chunk: Buffer) => void chunks.push(chunk));
    far.on("close", () => resolve({ headers: headers ?? {}, body: Buffer.concat(chunks), trailers: trailers ?? {} }));
  });
}

function respond(near: ServerHttp2Stream, { headers, body, trailers }: Answer): void {
  if (near.destroyed) return;
  near.respond(headers, { waitForTrailers: true });
  near.on("wantTrailers", () => near.sendTrailers(trailers));
  near.end(body);
}

/** A message of gRPC: not compressed, and its length. */
function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function errorHeaders({ code, message }: CallError): OutgoingHttpHeaders {
  const encoded = message.replace(/[^\x20-\x24\x26-\x7e]/gu, encodeURIComponent);
  return { ...MESSAGE_HEADERS, "grpc-status": String(code), "grpc-message": encoded };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
