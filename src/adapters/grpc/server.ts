import { createServer, type Socket } from "node:net";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { messageOf } from "../../lib/errors.ts";
import { bindUnix, type UnixAddress } from "../net/listen.ts";
import type { Method } from "./channel.ts";

/** Bytes of the longest error that a client is answered. */
const MESSAGE_BYTES = 4096;
/** Calls that one connection may have open: clients of the agent make a few at a time. */
const MOST_CALLS = 100;
/** Connections beyond these are closed at once: each takes a descriptor, of which the agent has a limited number. */
const MOST_CONNECTIONS = 512;

/** One method that is served. Made by `serve`, which knows its types. */
export interface GrpcHandler {
  addTo(server: Server): void;
}

/** A served socket. */
export interface GrpcListener {
  readonly address: string;
  readonly port: number;
  close(): Promise<void>;
}

/** The answer to a call that comes too often. */
export class TooManyCallsError extends Error {
  override readonly name = "TooManyCallsError";
  constructor() {
    super("rejected by rate limit");
  }
}

/** Serves a method; `answer` gets a signal that aborts when the caller is gone. An error is answered as it is. */
export function serve<Request, Response>(
  method: Method<Request, Response>,
  answer: (request: Request, options: Abortable) => Response | Promise<Response>,
): GrpcHandler {
  type Call = ServerUnaryCall<Request, Response>;
  type Done = sendUnaryData<Response>;
  const handle = async (call: Call, done: Done): Promise<void> => {
    const gone = new AbortController();
    call.on("cancelled", () => gone.abort());
    try {
      done(null, await answer(call.request, { signal: gone.signal }));
    } catch (error) {
      done({ code: codeOf(error), details: clip(messageOf(error), MESSAGE_BYTES) });
    }
  };
  const encode = (response: Response): Buffer => Buffer.from(method.response.encode(response).finish());
  const decode = (bytes: Buffer): Request => method.request.decode(bytes);
  return {
    addTo: (server) =>
      void server.register(method.path, (call: Call, done: Done) => void handle(call, done), encode, decode, "unary"),
  };
}

/** Listens on a unix socket; a stale socket is replaced. Rejects with a `ListenError`. */
export async function listenGrpc(
  address: UnixAddress,
  handlers: readonly GrpcHandler[],
  { mostConnections = MOST_CONNECTIONS }: { readonly mostConnections?: number } = {},
): Promise<GrpcListener> {
  const server = new Server({ "grpc.max_concurrent_streams": MOST_CALLS });
  for (const handler of handlers) handler.addTo(server);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  listener.maxConnections = mostConnections;
  listener.on("error", () => undefined);
  const bound = await bindUnix(listener, address);
  return {
    ...bound,
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve());
        server.forceShutdown();
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function codeOf(error: unknown): number {
  return error instanceof TooManyCallsError ? status.RESOURCE_EXHAUSTED : status.UNKNOWN;
}
