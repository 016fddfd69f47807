import type { BinaryReader } from "@bufbuild/protobuf/wire";
import { Client, connectivityState, credentials, type Interceptor, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { Abortable } from "../../lib/abort.ts";
import { RuntimeError } from "../runtime/port.ts";
import { decodeBounded } from "./bounded-decode.ts";
import { socketPath } from "./endpoint.ts";
import { failedCode, type GrpcCode, type GrpcStatus, grpcStatus, toRuntimeError } from "./grpc-error.ts";
import { ReadOnDemandCall } from "./read-on-demand-call.ts";
import { ReceivedMessage } from "./received-message.ts";
import { joinSmallFrames } from "./small-frames.ts";

type Scalar = Date | Uint8Array | string | number | boolean | undefined;

/** A message whose fields may all be left out. */
export type DeepPartial<T> = T extends bigint
  ? string | number | bigint
  : T extends Scalar
    ? T
    : T extends (infer U)[]
      ? DeepPartial<U>[]
      : T extends object
        ? { [K in keyof T]?: DeepPartial<T[K]> }
        : Partial<T>;

/** The generated functions of a message that a call needs. */
export interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  decode(input: BinaryReader | Uint8Array): T;
  fromPartial(object: DeepPartial<T>): T;
}

/** One call that ended: its full path, how long it took, and the status code of one that failed. */
export interface EndedCall {
  readonly path: string;
  readonly tookMs: number;
  readonly error?: GrpcCode;
  /** The runtime handler of a sandbox that was to be made. */
  readonly handler?: string;
}

/** One remote method: its full path and the codecs of both sides. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
  /** The most fields of an answer that is decoded; without it only the size of messages is limited. */
  readonly mostFields?: number;
}

/** Names a method with its codecs; the types follow from these. */
export function method<Request, Response>(
  path: string,
  request: Codec<Request>,
  response: Codec<Response>,
): Method<Request, Response> {
  return { path, request, response };
}

export interface CallOptions extends Abortable {
  /** Deadline of the call. Absent: none, only for calls that may take as long as they like (a pull, a stream). */
  readonly timeoutMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  /** A method that older runtimes lack: once refused, it is refused here without a call until the connection is lost. */
  readonly optional?: boolean;
}

/** How the messages of a stream are received. */
interface ReceiveOptions<Item> extends CallOptions {
  readonly deserialize: (bytes: Buffer) => Item;
  readonly interceptors: readonly Interceptor[];
  /** Called before each message is awaited. */
  readonly beforeEach: () => void;
}

/** One call in a trace: what it carries to the other side, and its end. */
export interface TracedCall {
  readonly metadata: Readonly<Record<string, string>>;
  ended(error?: unknown): void;
}

export interface ChannelOptions {
  /** Shares no connection, and so no reconnect back-off, with other channels to the same socket. */
  readonly hasOwnConnection?: boolean;
  /** The largest message that is received, in bytes; 16 MiB by default. */
  readonly messageBytes?: number;
  /** Where calls are counted that have not ended. */
  readonly calls?: { begin(path: string): () => void } | undefined;
  /** Begins a span of each call with one answer; undefined for a call that is not traced. */
  readonly traced?: ((path: string) => TracedCall | undefined) | undefined;
  /** Turns the status of a failed call into an error of its own kind; a RuntimeError without it. */
  readonly failureOf?: ((status: GrpcStatus) => Error) | undefined;
  /** The endpoint is a target as gRPC writes it (`host:port`, `dns:///…`), not a socket of this machine. */
  readonly isTarget?: boolean;
}

const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;
/** Both ends count the deadline by clocks of their own. */
const CLOCK_SLACK_MS = 50;

/** No keepalive: containerd answers pings with GOAWAY too_many_pings. */
const CHANNEL_OPTIONS = {
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 1000,
  "grpc.max_send_message_length": MESSAGE_LIMIT_BYTES,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_http_proxy": 0,
} as const;

/**
 * The one place that knows grpc-js: a connection to a unix socket that is opened at the first call, fails calls at once
 * while nobody listens, and comes back by itself. Every failure leaves here as a RuntimeError, an abort as its reason.
 */
export class GrpcChannel {
  private readonly client: Client;
  private readonly lacking = new Set<string>();
  /** Cancel the calls in flight. */
  private readonly cancels = new Set<() => void>();

  constructor(
    endpoint: string,
    private readonly onCall: (call: EndedCall) => void = () => undefined,
    private readonly options: ChannelOptions = {},
  ) {
    joinSmallFrames();
    const own = options.hasOwnConnection === true ? { "grpc.use_local_subchannel_pool": 1 } : {};
    const { messageBytes = MESSAGE_LIMIT_BYTES } = options;
    const all = { ...CHANNEL_OPTIONS, "grpc.max_receive_message_length": messageBytes, ...own };
    const target = options.isTarget === true ? endpoint : `unix:${socketPath(endpoint)}`;
    this.client = new Client(target, credentials.createInsecure(), all);
  }

  /** One request, one answer. */
  async unary<Request, Response>(
    method: Method<Request, Response>,
    request: DeepPartial<Request>,
    options: CallOptions,
  ): Promise<Response> {
    options.signal.throwIfAborted();
    if (this.lacking.has(method.path)) throw new RuntimeError("Unimplemented", `${method.path} is not implemented`);
    const began = performance.now();
    const due = began + (options.timeoutMs ?? Number.POSITIVE_INFINITY);
    const call = { path: method.path, ...handlerOf(request) };
    const ended = this.options.calls?.begin(method.path);
    const traced = this.options.traced?.(method.path);
    const metadata = traced === undefined ? options.metadata : { ...options.metadata, ...traced.metadata };
    try {
      const answer = await this.call(method, request, metadata === undefined ? options : { ...options, metadata });
      this.onCall({ ...call, tookMs: performance.now() - began });
      traced?.ended();
      return answer;
    } catch (error) {
      traced?.ended(error);
      const isOverdue = performance.now() > due - CLOCK_SLACK_MS;
      const code = failedCode(error, options.signal, isOverdue);
      this.onCall({ ...call, tookMs: performance.now() - began, error: code });
      const failure = toRuntimeError(error, options.signal, isOverdue);
      const status = failure instanceof RuntimeError ? grpcStatus(error, isOverdue) : undefined;
      if (status !== undefined && this.options.failureOf) throw this.options.failureOf(status);
      throw this.failure(method.path, failure, options);
    } finally {
      ended?.();
    }
  }

  /** One request, many answers. Begins at the first `next()`; leaving the loop early cancels the call. */
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: DeepPartial<Request>,
    options: CallOptions,
  ): AsyncGenerator<Response, void, undefined> {
    return this.receive(method, request, {
      ...options,
      deserialize: deserializer(method),
      interceptors: [],
      beforeEach: () => undefined,
    });
  }

  /**
   * As `stream`, of a server that may send more than is good for the agent: a message is received when `next()` asks for
   * it, not ahead of that, and decoded when the caller reads it.
   */
  messages<Request, Response>(
    method: Method<Request, Response>,
    request: DeepPartial<Request>,
    options: CallOptions,
  ): AsyncGenerator<ReceivedMessage<Response>, void, undefined> {
    const decode = deserializer(method);
    let reading: ReadOnDemandCall | undefined;
    return this.receive(method, request, {
      ...options,
      deserialize: (bytes) => new ReceivedMessage(method.path, bytes, decode),
      interceptors: [(of, next) => (reading = new ReadOnDemandCall(next(of)))],
      beforeEach: () => reading?.demand(),
    });
  }

  /** Keeps the connection established and calls `fn` with whether it is, now and after each change, until `close`. */
  watchConnection(fn: (isConnected: boolean) => void): void {
    const channel = this.client.getChannel();
    const look = (): void => {
      // Asking a closed channel to connect would bring it back for good.
      if (channel.getConnectivityState(false) === connectivityState.SHUTDOWN) return;
      const state = channel.getConnectivityState(true);
      fn(state === connectivityState.READY);
      if (channel.getConnectivityState(false) === connectivityState.SHUTDOWN) return;
      channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, (error) => {
        if (error === undefined) look();
      });
    };
    look();
  }

  /** Ends the connection when the calls in flight have ended. */
  close(): void {
    this.client.close();
  }

  /** Ends the connection; calls in flight fail. */
  abort(): void {
    for (const cancel of this.cancels) cancel();
    this.client.close();
  }

  private async *receive<Request, Item>(
    method: Method<Request, unknown>,
    request: DeepPartial<Request>,
    { deserialize, interceptors, beforeEach, ...options }: ReceiveOptions<Item>,
  ): AsyncGenerator<Item, void, undefined> {
    options.signal.throwIfAborted();
    if (this.lacking.has(method.path)) throw new RuntimeError("Unimplemented", `${method.path} is not implemented`);
    const call = this.client.makeServerStreamRequest(
      method.path,
      serializer(method.request),
      deserialize,
      method.request.fromPartial(request),
      metadataOf(options),
      { interceptors: [...interceptors] },
    );
    // The cancel in `finally` makes one more error, which nobody waits for.
    call.on("error", () => undefined);
    const cancel = (): void => call.cancel();
    options.signal.addEventListener("abort", cancel, { once: true });
    this.cancels.add(cancel);
    const began = performance.now();
    let failed: { error?: GrpcCode } = {};
    try {
      beforeEach();
      // A Readable iterates over `any`; the deserializer makes every item an Item.
      for await (const item of call as AsyncIterable<Item>) {
        yield item;
        beforeEach();
      }
    } catch (error) {
      failed = { error: failedCode(error, options.signal) };
      throw this.failure(method.path, toRuntimeError(error, options.signal), options);
    } finally {
      this.onCall({ path: method.path, tookMs: performance.now() - began, ...failed });
      options.signal.removeEventListener("abort", cancel);
      this.cancels.delete(cancel);
      call.cancel();
    }
  }

  private call<Request, Response>(
    method: Method<Request, Response>,
    request: DeepPartial<Request>,
    options: CallOptions,
  ): Promise<Response> {
    const { signal, timeoutMs } = options;
    return new Promise<Response>((resolve, reject) => {
      const call = this.client.makeUnaryRequest(
        method.path,
        serializer(method.request),
        deserializer(method),
        method.request.fromPartial(request),
        metadataOf(options),
        timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
        (error: ServiceError | null, response?: Response) => {
          signal.removeEventListener("abort", cancel);
          this.cancels.delete(cancel);
          if (error !== null) reject(error);
          else if (response === undefined) reject(new RuntimeError("Unknown", `${method.path}: empty answer`));
          else resolve(response);
        },
      );
      const cancel = (): void => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      this.cancels.add(cancel);
    });
  }

  /** Records a missing method, and returns the error. */
  private failure(path: string, error: unknown, { optional }: CallOptions): unknown {
    if (!(error instanceof RuntimeError)) return error;
    if (error.code === "Unimplemented" && optional) this.lacking.add(path);
    // What comes back may be another version of the runtime.
    if (error.code === "Unavailable") this.lacking.clear();
    return error;
  }
}

function serializer<T>(codec: Codec<T>): (message: T) => Buffer {
  return (message) => {
    const bytes = codec.encode(message).finish();
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function deserializer<T>({ response, mostFields }: Pick<Method<unknown, T>, "response" | "mostFields">) {
  return (bytes: Buffer): T =>
    mostFields === undefined ? response.decode(bytes) : decodeBounded(response, bytes, mostFields);
}

function metadataOf({ metadata = {} }: CallOptions): Metadata {
  const result = new Metadata();
  for (const [key, value] of Object.entries(metadata)) result.set(key, value);
  return result;
}

/** Only the request for a sandbox names a handler; sandboxes are counted by it. */
function handlerOf(request: unknown): { handler?: string } {
  const isObject = typeof request === "object" && request !== null;
  const handler: unknown = isObject && "runtimeHandler" in request ? request.runtimeHandler : undefined;
  return typeof handler === "string" ? { handler } : {};
}
