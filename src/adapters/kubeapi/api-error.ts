import { errnoOf, messageOf } from "../../lib/errors.ts";
import type { Status } from "../../model/generated/types.ts";
import { ApiError, type ApiErrorCode } from "./port.ts";

/** Codes by the reason of a Status object, which is more specific than the HTTP status. */
const BY_REASON: Readonly<Record<string, ApiErrorCode>> = {
  NotFound: "NotFound",
  AlreadyExists: "AlreadyExists",
  Conflict: "Conflict",
  Forbidden: "Forbidden",
  Unauthorized: "Unauthorized",
  Gone: "Gone",
  Expired: "Gone",
  Invalid: "Invalid",
  BadRequest: "Invalid",
  TooManyRequests: "TooManyRequests",
  ServerTimeout: "Timeout",
  Timeout: "Timeout",
  ServiceUnavailable: "Unavailable",
};

const BY_HTTP_STATUS: Readonly<Record<number, ApiErrorCode>> = {
  400: "Invalid",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  408: "Timeout",
  409: "Conflict",
  410: "Gone",
  415: "Invalid",
  422: "Invalid",
  429: "TooManyRequests",
  500: "Unavailable",
  502: "Unavailable",
  503: "Unavailable",
  504: "Timeout",
};

const LONGEST_FOREIGN_BODY = 200;

interface FailedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

/** The error of a response with a status of 400 or more. The body may be a Status object, a text or empty. */
export function errorOfAnswer(answer: FailedAnswer): ApiError {
  const text = answer.body.toString();
  const status = parseStatus(text);
  const retryAfterMs = retryAfterOf(answer.headers["retry-after"], status);
  const facts = {
    httpStatus: answer.status,
    ...(status && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
  const foreign = text.slice(0, LONGEST_FOREIGN_BODY).trim();
  const message =
    status?.message || `HTTP ${answer.status}${foreign === "" || status !== undefined ? "" : `: ${foreign}`}`;
  return new ApiError(codeOf(answer.status, status), message, { facts });
}

/** The error that an ERROR event of a watch carries. */
export function errorOfStatus(status: Status): ApiError {
  const httpStatus = status.code ?? 0;
  const retryAfterMs = retryAfterOf(undefined, status);
  const facts = { httpStatus, status, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return new ApiError(codeOf(httpStatus, status), status.message || "watch failed", { facts });
}

/** The error of a connection that failed or was lost. An `ApiError` is returned unchanged. */
export function errorOfConnection(error: unknown, what: string): ApiError {
  if (error instanceof ApiError) return error;
  const errno = errnoOf(error);
  const text = messageOf(error) || errno || "no reason given";
  return new ApiError("Unavailable", `${what}: ${text}`, { cause: error });
}

/** True if `text` is a Status object of Kubernetes. */
function parseStatus(text: string): Status | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    const isStatus = typeof parsed === "object" && parsed !== null && "kind" in parsed && parsed.kind === "Status";
    // Read with care below: only strings and numbers are used.
    return isStatus ? (parsed as Status) : undefined;
  } catch {
    return undefined;
  }
}

function codeOf(httpStatus: number, status: Status | undefined): ApiErrorCode {
  const byReason = BY_REASON[status?.reason ?? ""];
  if (byReason !== undefined) return byReason;
  return BY_HTTP_STATUS[httpStatus] ?? (httpStatus >= 500 ? "Unavailable" : "Unknown");
}

/** Seconds only: the API server never sends a date. */
function retryAfterOf(header: string | undefined, status: Status | undefined): number | undefined {
  const seconds = /^\d+$/.test(header ?? "") ? Number(header) : status?.details?.retryAfterSeconds;
  return typeof seconds === "number" && seconds > 0 ? seconds * 1000 : undefined;
}
