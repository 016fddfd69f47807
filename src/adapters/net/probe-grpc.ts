import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type Abortable, TimeLimitError } from "../../lib/abort.ts";
import { hostAndPort } from "../../model/http-action.ts";
import { dialError, dialTimeout } from "./probe-error.ts";

export interface GrpcHealthRequest {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  readonly userAgent: string;
}

/** What a health check answered: the gRPC code, its words, and the serving status of an answer with code 0. */
export interface GrpcHealthAnswer {
  readonly code: number;
  readonly message: string;
  readonly status: "UNKNOWN" | "SERVING" | "NOT_SERVING" | "SERVICE_UNKNOWN" | undefined;
}

const UNKNOWN_CODE = 2;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const INTERNAL = 13;
const STATUSES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;
/** Field 1, a text. */
const NAME_TAG = 10;
/** A health answer has a few bytes. */
const LARGEST_ANSWER = 10 * 1024;

/**
 * One `grpc.health.v1.Health/Check` over a plaintext connection of its own. Resolves with whatever the server said;
 * rejects with a `ProbeNetError` when there is no connection, or with the signal's reason.
 */
export function grpcHealth(request: GrpcHealthRequest, { signal }: Abortable): Promise<GrpcHealthAnswer> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const address = hostAndPort(request.host, request.port);
    const session = connect(`http://${address}`);
    let isConnected = false;
    const end = (settle: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      session.destroy();
      settle();
    };
    const onAbort = (): void => {
      const isLate = signal.reason instanceof TimeLimitError && !isConnected;
      end(() => reject(isLate ? dialTimeout(address) : (signal.reason as Error)));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const broken = (error: Error): void =>
      end(() => (isConnected ? resolve(answer(UNAVAILABLE, error.message)) : reject(dialError(address, error))));
    session.on("error", broken);
    session.on("close", () => broken(new Error("connection closed")));
    session.on("connect", () => {
      isConnected = true;
    });
    check(session, request, (result) => {
      // Without a connection the stream ends first, and the session says why.
      if (isConnected) end(() => resolve(result));
    });
  });
}

function check(
  session: ClientHttp2Session,
  request: GrpcHealthRequest,
  done: (answer: GrpcHealthAnswer) => void,
): void {
  const stream = session.request({
    [constants.HTTP2_HEADER_METHOD]: "POST",
    [constants.HTTP2_HEADER_PATH]: "/grpc.health.v1.Health/Check",
    "content-type": "application/grpc",
    te: "trailers",
    "user-agent": request.userAgent,
  });
  let headers: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("error", (error) => done(answer(INTERNAL, error.message)));
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("trailers", (received) => {
    trailers = received;
  });
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= LARGEST_ANSWER) chunks.push(chunk);
  });
  stream.on("close", () => done(judge({ ...headers, ...trailers }, Buffer.concat(chunks))));
  stream.end(healthRequest(request.service));
}

function judge(headers: IncomingHttpHeaders, body: Buffer): GrpcHealthAnswer {
  const status = Number(headers[":status"]);
  if (headers["grpc-status"] === undefined) {
    const code = status === 404 ? UNIMPLEMENTED : UNKNOWN_CODE;
    return answer(code, `unexpected HTTP status code received from server: ${status}`);
  }
  const code = Number(headers["grpc-status"]);
  const message = decodeMessage(String(headers["grpc-message"] ?? ""));
  if (code !== 0) return answer(code, message);
  return { code, message, status: servingStatus(body) };
}

function answer(code: number, message: string): GrpcHealthAnswer {
  return { code, message, status: undefined };
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Message frame: no compression, length, then field 1 (the name) unless it is empty. */
function healthRequest(service: string): Buffer {
  const message = new BinaryWriter();
  if (service !== "") message.uint32(NAME_TAG).string(service);
  const bytes = message.finish();
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([frame, bytes]);
}

/** Field 1 of the answer; missing means 0. */
function servingStatus(body: Buffer): GrpcHealthAnswer["status"] {
  const message = body.subarray(5, 5 + (body.length >= 5 ? body.readUInt32BE(1) : 0));
  return STATUSES[statusField(message)] ?? "UNKNOWN";
}

function statusField(message: Buffer): number {
  try {
    const reader = new BinaryReader(message);
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === 1 && wireType === WireType.Varint) return reader.int32();
      reader.skip(wireType, field);
    }
  } catch {
    // A malformed answer says nothing.
  }
  return 0;
}
