import { clip } from "../lib/bounded-text.ts";

/** What a message may take in a container status, in bytes: registries, runtimes and pods choose it. */
const MESSAGE_BYTES = 4096;

/** When a failed start may be tried again, and what is shown until then. */
export interface StartRetry {
  readonly afterMs: number;
  /** The waiting reason meanwhile, if it is another one (`ImagePullBackOff`). */
  readonly reason?: string;
  readonly message?: string;
}

/** A container that could not be started; `reason` is its waiting reason, such as `ErrImagePull`. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly reason: string;
  readonly retry: StartRetry;

  constructor(reason: string, retry: StartRetry, options: { message: string; cause?: unknown }) {
    super(clip(options.message, MESSAGE_BYTES), options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.retry = retry.message === undefined ? retry : { ...retry, message: clip(retry.message, MESSAGE_BYTES) };
  }
}
