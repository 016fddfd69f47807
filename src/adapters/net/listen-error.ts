import { CodedError } from "../../lib/errors.ts";

/** Why a listener could not be opened; `InUse` is worth a retry. */
export type ListenErrorCode = "InUse" | "Denied" | "NoAddress" | "PathTooLong" | "Other";

/** A listener that could not be opened. The message names the port or path, the option, and the holder if known. */
export class ListenError extends CodedError<ListenErrorCode> {}
