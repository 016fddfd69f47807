import type { Status, StatusCause, StatusDetails } from "../../model/generated/types.ts";
import { type FieldError, fieldErrorText } from "./field-error.ts";

/** A resource in messages: `pods`, `deployments.apps`. */
export interface GroupResource {
  readonly group: string;
  readonly plural: string;
}

/** A kind in messages: `Pod`, `Deployment.apps`. */
export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

interface Failure {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: StatusDetails;
}

/** An answer of the API that is not a success: what the client gets is `status`. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor({ code, reason, message, details }: Failure, options?: { cause?: unknown }) {
    super(message, options);
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message,
      ...(reason !== "" && { reason }),
      ...(details && { details }),
      code,
    };
  }

  /** The HTTP status. */
  get code(): number {
    return this.status.code ?? 500;
  }
}

export function qualified({ group, plural }: GroupResource): string {
  return group === "" ? plural : `${plural}.${group}`;
}

function detailsOf({ group, plural }: GroupResource, name: string): StatusDetails {
  return { ...(name !== "" && { name }), ...(group !== "" && { group }), kind: plural };
}

export function notFound(resource: GroupResource, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" not found`;
  return new StatusError({ code: 404, reason: "NotFound", message, details: detailsOf(resource, name) });
}

export function alreadyExists(resource: GroupResource, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new StatusError({ code: 409, reason: "AlreadyExists", message, details: detailsOf(resource, name) });
}

/** Why two writes of one object cannot both be. */
export const MODIFIED = "the object has been modified; please apply your changes to the latest version and try again";

export function conflict(resource: GroupResource, name: string, why: string = MODIFIED): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new StatusError({ code: 409, reason: "Conflict", message, details: detailsOf(resource, name) });
}

export function forbiddenRequest(resource: GroupResource, name: string, why: string): StatusError {
  const subject = name === "" ? qualified(resource) : `${qualified(resource)} "${name}"`;
  const details = detailsOf(resource, name);
  return new StatusError({ code: 403, reason: "Forbidden", message: `${subject} is forbidden: ${why}`, details });
}

/** The object has fields that are wrong; all of them are named. */
export function invalidObject({ group, kind }: GroupKind, name: string, errors: readonly FieldError[]): StatusError {
  const causes = errors.map(({ type, field, body }): StatusCause => ({ reason: type, message: body, field }));
  const texts = [...new Set(errors.map(fieldErrorText))];
  const all = texts.length === 1 ? (texts[0] ?? "") : `[${texts.join(", ")}]`;
  const message = `${group === "" ? kind : `${kind}.${group}`} "${name}" is invalid: ${all}`;
  const details = { ...(name !== "" && { name }), ...(group !== "" && { group }), kind, causes };
  return new StatusError({ code: 422, reason: "Invalid", message, details });
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: "BadRequest", message });
}

/** A path, a resource or a sub-resource that is not served. */
export function noSuchResource(): StatusError {
  const message = "the server could not find the requested resource";
  return new StatusError({ code: 404, reason: "NotFound", message, details: {} });
}

export function methodNotAllowed(): StatusError {
  const message = "the server does not allow this method on the requested resource";
  return new StatusError({ code: 405, reason: "MethodNotAllowed", message, details: {} });
}

/** A revision that is not known any more: the client lists again. */
export function expired(message: string): StatusError {
  return new StatusError({ code: 410, reason: "Expired", message });
}

/** A revision that has not been reached within the time that a request waits for it. */
export function tooLargeRevision(wanted: number, current: number): StatusError {
  const message = `Too large resource version: ${wanted}, current: ${current}`;
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  const details = { causes, retryAfterSeconds: 1 };
  return new StatusError({ code: 504, reason: "Timeout", message: `Timeout: ${message}`, details });
}

/** Too much is in flight: the client may try again in a second. */
export function tooManyRequests(): StatusError {
  const message = "Too many requests, please try again later.";
  return new StatusError({ code: 429, reason: "TooManyRequests", message, details: { retryAfterSeconds: 1 } });
}

export function unauthorized(): StatusError {
  return new StatusError({ code: 401, reason: "Unauthorized", message: "Unauthorized" });
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return new StatusError({ code: 415, reason: "UnsupportedMediaType", message });
}

/** A patch of a type that is none of the four. */
export function unsupportedPatch(): StatusError {
  const message = "415: Unsupported Media Type";
  return new StatusError({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(", ")}`;
  return new StatusError({ code: 406, reason: "NotAcceptable", message });
}

export function tooLargeBody(limit: number): StatusError {
  const message = `Request entity too large: limit is ${limit}`;
  return new StatusError({ code: 413, reason: "RequestEntityTooLarge", message });
}

/** The node cannot do it now: its disk failed, or a bug. */
export function internalError(message: string, cause?: unknown): StatusError {
  const details = { causes: [{ message }] };
  const failure = { code: 500, reason: "InternalError", message: `Internal error occurred: ${message}`, details };
  return new StatusError(failure, { cause });
}

/** The answer to a deletion that left nothing. */
export function deletedStatus(resource: GroupResource, name: string, uid: string): Status {
  const details = { ...detailsOf(resource, name), ...(uid !== "" && { uid }) };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}
