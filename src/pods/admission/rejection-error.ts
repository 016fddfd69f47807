import type { Rejection } from "./facts.ts";

/** Carries a rejection to the journal, whose views (events, metrics, `explain`) show its reason. */
export class RejectionError extends Error {
  readonly reason: string;

  constructor({ reason, message }: Rejection) {
    super(message);
    this.reason = reason;
  }
}
