import { RuntimeError, type RuntimeErrorCode } from "../adapters/runtime/port.ts";
import { clip } from "../lib/bounded-text.ts";
import { messageOf } from "../lib/errors.ts";
import { StuckPullError } from "./pull-progress.ts";

/** Errors of the runtime that are waiting reasons of their own; their message begins with the reason, as in CRI. */
const REASONS = [
  { reason: "RegistryUnavailable", why: "the registry is unavailable" },
  { reason: "SignatureValidationFailed", why: "the signature validation failed" },
] as const;

/** Returns the waiting reason and message for a failed pull. Pure. */
export function pullFailure(image: string, error: unknown): { readonly reason: string; readonly message: string } {
  const text = messageOf(error);
  const found = REASONS.find(({ reason }) => text.startsWith(reason));
  if (found === undefined) return { reason: "ErrImagePull", message: text };
  const rest = text.slice(found.reason.length);
  return { reason: found.reason, message: `image pull failed for ${image} because ${found.why}${rest}` };
}

/** One error for the failed tries with each credential; equal messages count once, as in Kubernetes. */
export function joinPullErrors(errors: readonly unknown[]): unknown {
  const messages = [...new Set(errors.map(messageOf))];
  if (messages.length === 1) return errors[0];
  const cause = errors.find((error) => !isAnswer(error)) ?? errors.at(-1);
  return new Error(`[${messages.join(", ")}]`, { cause });
}

/** Errors of calls that the runtime did not answer: what it did is not known. */
const UNANSWERED: ReadonlySet<RuntimeErrorCode> = new Set(["Unavailable", "Timeout"]);

/** True if the runtime itself says that the pull failed; false if the call was cancelled or got lost. Pure. */
export function isAnswer(error: unknown): boolean {
  const own = error instanceof Error && !(error instanceof RuntimeError) ? error.cause : error;
  return own instanceof RuntimeError && !UNANSWERED.has(own.code);
}

/** How many answers are kept, and what one may take in bytes: registries choose them. */
const MOST_ANSWERS = 256;
const ANSWER_BYTES = 512;

/** The last answer of a registry for each image whose pull failed, for a later pull that gets none. */
export class LastAnswers {
  private readonly answers = new Map<string, string>();

  /** Records why a pull failed; returns the error, for a stuck pull with the answer before it. */
  failed(image: string, error: unknown): unknown {
    const known = this.answers.get(image);
    if (error instanceof StuckPullError) {
      if (known === undefined) return error;
      return new StuckPullError(`${error.message}; the registry's last answer: ${known}`, { cause: error });
    }
    this.answers.delete(image);
    this.answers.set(image, clip(messageOf(error), ANSWER_BYTES));
    const oldest = this.answers.keys().next();
    if (this.answers.size > MOST_ANSWERS && !oldest.done) this.answers.delete(oldest.value);
    return error;
  }

  succeeded(image: string): void {
    this.answers.delete(image);
  }
}
