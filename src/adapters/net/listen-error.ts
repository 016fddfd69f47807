import { CodedError } from "../../lib/errors.ts";

/** Why a listener failed to open; `InUse` may be retried. */
export type ListenErrorCode = "InUse" | "Denied" | "NoAddress" | "PathTooLong" | "Other";

/** A listener failed to open. The message names the port or path, the option, and the holder if known. */
export class ListenError extends CodedError<ListenErrorCode> {}
