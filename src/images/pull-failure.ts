import { messageOf } from "../lib/errors.ts";

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
  return messages.length === 1 ? errors[0] : new Error(`[${messages.join(", ")}]`, { cause: errors.at(-1) });
}
