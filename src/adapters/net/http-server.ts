import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import Router from "find-my-way";
import { AbortedError, isAborted } from "../../lib/abort.ts";
import type { Logger } from "../../lib/log.ts";
import { type HttpAnswer, type HttpRoute, readTarget, textAnswer } from "./http-route.ts";
import { bindTcp, bindUnix, type TcpAddress, type UnixAddress } from "./listen.ts";

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
}

/** The API server keeps pooled connections; Node's default of 5 s would cut them. */
const KEEP_ALIVE_MS = 120_000;
const MAX_HEADER_BYTES = 1024 * 1024;

/** Opens a plain HTTP listener. Rejects with `ListenError`; it never takes the process down afterwards. */
export async function listenHttp(deps: { log: Logger }, options: HttpServerOptions): Promise<HttpListener> {
  const dispatch = dispatcher(options.routes);
  const leaving = new AbortController();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, maxHeaderSize: MAX_HEADER_BYTES });
  server.on("request", (request, response) => {
    serve(dispatch, { request, response, leaving: leaving.signal }).catch((error: unknown) => {
      deps.log.error("HTTP request failed", error, { method: request.method, path: request.url });
    });
  });
  server.on("clientError", (_error, socket) => {
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    else socket.destroy();
  });
  const { address } = options;
  const bound = "path" in address ? await bindUnix(server, address) : await bindTcp(server, address);
  server.on("error", (error) => deps.log.error("HTTP listener failed", error, { address: bound.address }));
  return { ...bound, close: () => closeServer(server, leaving) };
}

async function closeServer(server: Server, leaving: AbortController): Promise<void> {
  leaving.abort(new AbortedError("the listener closes"));
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

type Dispatch = (method: string, target: string, signal: AbortSignal) => HttpAnswer | Promise<HttpAnswer>;

/** Finds the route of a request. The router only knows paths; methods are ours, so that a wrong one is a 405. */
function dispatcher(routes: readonly HttpRoute[]): Dispatch {
  const router = Router({ maxParamLength: 1024, caseSensitive: true });
  const byPath = new Map<string, HttpRoute[]>();
  for (const route of routes) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);
  for (const [path, candidates] of byPath) router.on("GET", path, () => undefined, candidates);

  return (method, target, signal) => {
    const read = readTarget(target);
    if ("refused" in read) return textAnswer(400, `400 Bad Request: ${read.refused}\n`);
    const found = router.find("GET", read.path);
    if (found === null) return textAnswer(404, "404 page not found\n");
    const candidates = found.store as readonly HttpRoute[]; // reason: stored by the line above
    const route = candidates.find(({ methods }) => methods === "any" || methods.includes(method));
    if (route === undefined) return textAnswer(405, "405: Method Not Allowed");
    return route.handle({
      method,
      path: decodeURIComponent(read.path),
      params: found.params,
      query: read.query,
      signal,
    });
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly leaving: AbortSignal;
}

async function serve(dispatch: Dispatch, { request, response, leaving }: Exchange): Promise<void> {
  const client = new AbortController();
  const leave = (): void => client.abort(new AbortedError("the client left"));
  request.on("error", leave).resume();
  response.on("error", leave).on("close", leave);
  leaving.addEventListener("abort", leave);
  try {
    let failure: unknown;
    const answer = await Promise.resolve()
      .then(() => dispatch(request.method ?? "GET", request.url ?? "/", client.signal))
      .catch((error: unknown) => {
        failure = error;
        return textAnswer(500, "Internal Error: see the agent's log\n");
      });
    if (!client.signal.aborted) await send(response, answer, client.signal);
    if (failure !== undefined && !isAborted(failure, client.signal)) throw failure;
  } catch (error) {
    if (!isAborted(error, client.signal)) {
      response.destroy();
      throw error;
    }
  } finally {
    leaving.removeEventListener("abort", leave);
  }
}

async function send(response: ServerResponse, answer: HttpAnswer, signal: AbortSignal): Promise<void> {
  const head = { "Content-Type": answer.type ?? "text/plain; charset=utf-8", ...answer.headers };
  if (typeof answer.body === "string" || answer.body instanceof Uint8Array) {
    response.writeHead(answer.status, { ...head, "Content-Length": Buffer.byteLength(answer.body) });
    response.end(answer.body);
    return;
  }
  response.writeHead(answer.status, head);
  response.flushHeaders();
  for await (const chunk of answer.body) {
    if (signal.aborted) return;
    if (!response.write(chunk)) await drained(response);
  }
  response.end();
}

/** Resolves when the client has read on, or is gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
    if (response.destroyed) done();
  });
}
