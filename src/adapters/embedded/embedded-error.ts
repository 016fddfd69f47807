import { CodedError } from "../../lib/errors.ts";

/** Why the embedded runtime is unavailable. The message names the fix. */
export type EmbeddedErrorCode =
  | "MissingProgram"
  | "UnsupportedVersion"
  | "ForeignDirectory"
  | "PathTooLong"
  | "NoSubnet"
  | "NetworkSetup"
  | "StartFailed"
  | "ImportFailed";

/** Any failure of starting or preparing the private containerd. */
export class EmbeddedError extends CodedError<EmbeddedErrorCode> {}
