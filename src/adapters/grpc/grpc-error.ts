import { clip } from "../../lib/bounded-text.ts";
import { messageOf } from "../../lib/errors.ts";
import { RuntimeError, type RuntimeErrorCode } from "../runtime/port.ts";

const CANCELLED = 1;
const UNKNOWN = 2;
const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;
/** What a message of the runtime may take, in bytes: it passes on what registries and containers say. */
const MESSAGE_BYTES = 4096;

/** gRPC status code → our code. What is not named is `Unknown`. */
const CODES: Readonly<Record<number, RuntimeErrorCode>> = {
  // Not by us: the connection went away under the call.
  [CANCELLED]: "Unavailable",
  3: "InvalidArgument",
  4: "Timeout",
  5: "NotFound",
  6: "AlreadyExists",
  7: "PermissionDenied",
  8: "ResourceExhausted",
  9: "FailedPrecondition",
  11: "InvalidArgument",
  12: "Unimplemented",
  14: "Unavailable",
  16: "PermissionDenied",
};

/** The status codes of gRPC by their numbers, in the spelling of Kubernetes' events and metrics. */
const NAMES = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;

/** A status code of gRPC by its name. */
export type GrpcCode = (typeof NAMES)[number];

/** How grpc-js describes calls of a killed runtime, where the status code alone is ambiguous. */
const LOST_CONNECTION = /RST_STREAM|ECONNRESET|EPIPE|GOAWAY|Connection dropped|Channel has been shut down/;
/** containerd keeps names unique but answers with code 2 (1.6) or 9 (2.4). */
const NAME_TAKEN = /name "[^"]*" is reserved for "/;
const NESTED_PREFIX = /rpc error: code = \w+ desc = /g;

/**
 * Whatever grpc-js threw as what the caller should see: the signal's reason for an abort of ours, else a RuntimeError.
 * A server that sees the deadline pass first resets the stream, which arrives as a cancellation that nobody asked for.
 */
export function toRuntimeError(error: unknown, signal: AbortSignal, isOverdue = false): unknown {
  if (error instanceof RuntimeError) return error;
  const code = statusCode(error);
  if (isCanceled(error, signal)) return signal.reason;
  const details = detailsOf(error);
  const message = clip(details, MESSAGE_BYTES).replace(NESTED_PREFIX, "");
  const mapped = code === CANCELLED && isOverdue ? "Timeout" : codeFor(code, message);
  // A cause would keep the whole text alive.
  return new RuntimeError(mapped, message, details.length > MESSAGE_BYTES ? undefined : { cause: error });
}

/** A failed call as its server meant it. */
export interface GrpcStatus {
  /** A status code of gRPC. */
  readonly code: number;
  readonly details: string;
}

/**
 * Returns the status of a failed call. grpc-js reports a killed server and a deadline that the server saw first by other
 * codes than the rest of the world. Undefined for what is no status at all.
 */
export function grpcStatus(error: unknown, isOverdue = false): GrpcStatus | undefined {
  const code = statusCode(error);
  if (code === undefined) return undefined;
  const details = clip(detailsOf(error), MESSAGE_BYTES);
  if (code === CANCELLED) return { code: isOverdue ? DEADLINE_EXCEEDED : UNAVAILABLE, details };
  const isLost = CODES[code] === undefined && LOST_CONNECTION.test(details);
  return { code: isLost ? UNAVAILABLE : code, details };
}

/** Returns the name of a status code; one that gRPC does not have is `Unknown`. */
export function grpcCode(code: number): GrpcCode {
  return NAMES[code] ?? "Unknown";
}

/** Returns the code that a failed call ended with: `Canceled` if the signal ended it. */
export function failedCode(error: unknown, signal: AbortSignal, isOverdue = false): GrpcCode {
  if (isCanceled(error, signal)) return "Canceled";
  return grpcCode(grpcStatus(error, isOverdue)?.code ?? UNKNOWN);
}

function isCanceled(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (statusCode(error) === CANCELLED || error === signal.reason);
}

function codeFor(code: number | undefined, message: string): RuntimeErrorCode {
  if (NAME_TAKEN.test(message)) return "AlreadyExists";
  const mapped = code === undefined ? undefined : CODES[code];
  if (mapped !== undefined) return mapped;
  return LOST_CONNECTION.test(message) ? "Unavailable" : "Unknown";
}

function statusCode(error: unknown): number | undefined {
  if (error instanceof Error && "code" in error && typeof error.code === "number") return error.code;
  return undefined;
}

function detailsOf(error: unknown): string {
  if (error instanceof Error && "details" in error && typeof error.details === "string") return error.details;
  return messageOf(error);
}
