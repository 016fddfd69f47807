import { CodedError, errnoOf, messageOf } from "../../lib/errors.ts";

export type HostErrorCode =
  /** A mount is at or below what should be removed. */
  | "Mounted"
  /** Still used: a process in a cgroup, a file written while it is removed. */
  | "Busy"
  /** Another process holds the lock. */
  | "Locked"
  | "Timeout"
  | "NotFound"
  | "PermissionDenied"
  | "NoSpace"
  | "InvalidArgument"
  /** The machine or the installation lacks what this needs. */
  | "Unsupported"
  | "Unknown";

/** Any failure of the machine; the system's own error is the cause. */
export class HostError extends CodedError<HostErrorCode> {}

const CODES: Readonly<Record<string, HostErrorCode>> = {
  ENOENT: "NotFound",
  ESRCH: "NotFound",
  EBUSY: "Busy",
  ENOTEMPTY: "Busy",
  EACCES: "PermissionDenied",
  EPERM: "PermissionDenied",
  EROFS: "PermissionDenied",
  ENOSPC: "NoSpace",
  EDQUOT: "NoSpace",
  EINVAL: "InvalidArgument",
  ENOTDIR: "InvalidArgument",
  EISDIR: "InvalidArgument",
  EXDEV: "Mounted",
  ENOSYS: "Unsupported",
  ETIMEDOUT: "Timeout",
};

/** A system error as a `HostError`, with what was tried; a `HostError` stays as it is. */
export function hostError(what: string, cause: unknown): HostError {
  if (cause instanceof HostError) return cause;
  const code = CODES[errnoOf(cause) ?? ""] ?? "Unknown";
  return new HostError(code, `${what}: ${messageOf(cause)}`, { cause });
}
