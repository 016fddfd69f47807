import { createServer } from "node:net";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { messageOf } from "../../lib/errors.ts";
import { bindUnix, type UnixAddress } from "../net/listen.ts";
import type { Method } from "./channel.ts";
import { ClientConnections, type ClientLimits, type ConnectionCalls } from "./client-connections.ts";
import { joinSmallFrames } from "./small-frames.ts";

/** Bytes of the longest error that a client is answered. */
const MESSAGE_BYTES = 4096;
const SERVER_OPTIONS = {
  /** Clients of the agent make a few calls at a time on one connection. */
  "grpc.max_concurrent_streams": 10,
  /** Requests have a few names. What is received of one is kept until it is complete. */
  "grpc.max_receive_message_length": 64 * 1024,
  "grpc.enable_channelz": 0,
};

/** A connection takes a descriptor, of which the agent has a limited number; the agent has a few clients. */
const LIMITS: ClientLimits = { connections: 128, unsentBytes: 64 * 1024 * 1024 };

/** One method that is served. Made by `serve`, which knows its types. */
export interface GrpcHandler {
  addTo(server: Server, calls: ConnectionCalls): void;
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
  type Call = ServerUnaryCall<Request, Buffer>;
  type Done = sendUnaryData<Buffer>;
  const handle = async (call: Call, done: Done, calls: ConnectionCalls): Promise<void> => {
    const gone = new AbortController();
    const open = calls.begin();
    // Emitted when the call has ended, however it did.
    call.on("cancelled", () => {
      open.end();
      gone.abort();
    });
    try {
      const bytes = method.response.encode(await answer(call.request, { signal: gone.signal })).finish();
      open.answered(bytes.length);
      done(null, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    } catch (error) {
      done({ code: codeOf(error), details: clip(messageOf(error), MESSAGE_BYTES) });
    }
  };
  const decode = (bytes: Buffer): Request => method.request.decode(bytes);
  return {
    addTo: (server, calls) => {
      const called = (call: Call, done: Done): void => void handle(call, done, calls);
      server.register(method.path, called, (bytes: Buffer) => bytes, decode, "unary");
    },
  };
}

/**
 * Listens on a unix socket; a stale socket is replaced. Rejects with a `ListenError`. Clients that hold more than the
 * limits allow lose their connection: gRPC connects again at their next call.
 */
export async function listenGrpc(
  address: UnixAddress,
  handlers: readonly GrpcHandler[],
  limits: Partial<ClientLimits> = {},
): Promise<GrpcListener> {
  joinSmallFrames();
  const connections = new ClientConnections({ ...LIMITS, ...limits });
  const listener = createServer((socket) => {
    // One a connection: gRPC does not tell to which of them a call belongs.
    const server = new Server(SERVER_OPTIONS);
    const calls = connections.add(() => socket.destroy());
    for (const handler of handlers) handler.addTo(server, calls);
    socket
      .on("error", () => socket.destroy())
      .on("close", () => {
        calls.close();
        server.forceShutdown();
      });
    server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(socket);
  });
  listener.on("error", () => undefined);
  const bound = await bindUnix(listener, address);
  return {
    ...bound,
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve());
        connections.closeAll();
      }),
  };
}

function codeOf(error: unknown): number {
  return error instanceof TooManyCallsError ? status.RESOURCE_EXHAUSTED : status.UNKNOWN;
}
