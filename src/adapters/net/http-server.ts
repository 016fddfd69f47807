import { createServer, type Server } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { AbortedError, manyListeners } from "../../lib/abort.ts";
import type { Logger } from "../../lib/log.ts";
import { EarlyDials } from "./early-dial.ts";
import { dispatcher, type Guard } from "./http-dispatch.ts";
import { type ExchangeContext, exchange, exchangeUpgrade } from "./http-exchange.ts";
import type { HttpRoute } from "./http-route.ts";
import { bindTcp, bindUnix, type TcpAddress, type UnixAddress } from "./listen.ts";
import { ChunkFrames } from "./push-body.ts";
import { TlsListener, type TlsOptions } from "./tls-listener.ts";

/** An open listener. */
export interface HttpListener {
  /** `127.0.0.1:10248`, `[::1]:10248` or the path of the socket. */
  readonly address: string;
  /** 0 on a unix socket. */
  readonly port: number;
  /** Ends every connection, streams too. May be repeated. */
  close(): Promise<void>;
}

export interface HttpServerOptions {
  readonly address: TcpAddress | UnixAddress;
  readonly routes: readonly HttpRoute[];
  /** HTTPS instead of HTTP. */
  readonly tls?: TlsOptions;
  readonly guard?: Guard;
  /** Called at each request; what it returns is called at the end of the answer. */
  observe?(method: string, target: string): () => void;
  /** Time limits for slow clients; tests set shorter ones. */
  readonly patience?: Patience;
  /** What clients that nobody knows yet may take of the memory; without it, as much as in Kubernetes. */
  readonly limits?: ConnectionLimits;
  /** Called after a crowd of connections has closed: their memory can be returned. */
  afterCrowd?(): void;
}

/** Header bytes are kept until they are complete, for each connection. */
export interface ConnectionLimits {
  /** At a time; more are closed at once. */
  readonly connections: number;
  readonly headerBytes: number;
}

/** Milliseconds. */
export interface Patience {
  /** For the whole request header. */
  readonly headersMs: number;
  /** For a whole request with its body. */
  readonly requestMs: number;
  /** How often connections are checked. */
  readonly checkMs: number;
  /** For a client to read an answer that is sent as a whole; then the connection is closed. */
  readonly answerMs: number;
  /** For a client to read the next piece of a stream. A stream without data may idle for ever. */
  readonly stallMs: number;
}

/** Number of simultaneous connections that is a crowd; the API server and its users have a few dozen. */
const CROWD = 500;

/** The API server keeps pooled connections; Node's default of 5 s would cut them. */
const KEEP_ALIVE_MS = 120_000;
const MAX_HEADER_BYTES = 1024 * 1024;
/** A stalled stream lasts four hours, as long as a request may take in Kubernetes: a log may be read in a pager. */
const STALL_MS = 4 * 3_600_000;
const PATIENCE: Patience = {
  headersMs: 30_000,
  requestMs: 300_000,
  checkMs: 10_000,
  answerMs: 300_000,
  stallMs: STALL_MS,
};

function httpOptions({ headersMs, requestMs, checkMs }: Patience, maxHeaderSize: number) {
  return {
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: checkMs,
  };
}

/** Opens an HTTP or HTTPS listener. Rejects with `ListenError`; it never takes the process down afterwards. */
export async function listenHttp(deps: { log: Logger }, options: HttpServerOptions): Promise<HttpListener> {
  const leaving = manyListeners();
  const patience = options.patience ?? PATIENCE;
  const http = httpOptions(patience, options.limits?.headerBytes ?? MAX_HEADER_BYTES);
  const tls = options.tls && new TlsListener(deps, options.tls, http);
  const server = tls?.server ?? createServer(http);
  if (options.limits !== undefined) server.maxConnections = options.limits.connections;
  const context: ExchangeContext = {
    dispatch: dispatcher(options.routes, options.guard),
    leaving: leaving.signal,
    dials: new EarlyDials(),
    patience,
    frames: new ChunkFrames(),
    ...(options.observe && { observe: options.observe }),
    ...(tls && { peerOf: (request) => tls.peerOf(request) }),
  };
  const failed = (method: string | undefined, path: string | undefined) => (error: unknown) =>
    deps.log.error("HTTP request failed", error, { method, path: path?.split("?", 1)[0]?.slice(0, 200) });
  server.on("request", (request, response) => {
    exchange(context, request, response).catch(failed(request.method, request.url));
  });
  const upgraded = new Set<Duplex>();
  server.on("upgrade", (request, socket, head) => {
    // After the parser nothing listens for a reset, and the server's list of connections does not have it.
    socket.on("error", () => socket.destroy());
    upgraded.add(socket);
    socket.on("close", () => upgraded.delete(socket));
    exchangeUpgrade(context, request, { socket, head }).catch(failed(request.method, request.url));
  });
  if (options.afterCrowd !== undefined) watchCrowd(server, options.afterCrowd);
  server.on("clientError", (error, socket) => {
    if (!socket.writable || socket.destroyed) return void socket.destroy();
    const status = STATUS_OF["code" in error ? String(error.code) : ""] ?? "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`, () => socket.destroy());
  });
  const { address } = options;
  const bound = "path" in address ? await bindUnix(server, address) : await bindTcp(server, address);
  server.on("error", (error) => deps.log.error("HTTP listener failed", error, { address: bound.address }));
  tls?.follow(leaving.signal);
  return { ...bound, close: () => closeServer(server, { leaving, upgraded }) };
}

/** The status for requests that the parser rejects; 400 for all others. */
const STATUS_OF: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/** Counts TCP connections, also those that never finish a TLS handshake. */
function watchCrowd(server: Server | TlsServer, afterCrowd: () => void): void {
  let open = 0;
  let most = 0;
  server.on("connection", (socket: Socket) => {
    open++;
    most = Math.max(most, open);
    socket.on("close", () => {
      open--;
      if (most < CROWD || open > most / 8) return;
      most = open;
      afterCrowd();
    });
  });
}

async function closeServer(
  server: Server | TlsServer,
  { leaving, upgraded }: { leaving: AbortController; upgraded: ReadonlySet<Duplex> },
): Promise<void> {
  leaving.abort(new AbortedError("the listener closes"));
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
    // A client that never closes its side would keep the server open for ever.
    for (const socket of upgraded) socket.destroy();
  });
}
