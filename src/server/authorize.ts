import type { Abortable } from "../lib/abort.ts";
import { withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Live } from "../lib/live.ts";
import type { User } from "./authenticate.ts";
import { TtlCache } from "./ttl-cache.ts";

/** A subject access review: may this user do this to the node? */
export interface AccessQuestion {
  readonly user: User;
  readonly verb: string;
  readonly subresource: string;
}

/** Reviews access. Rejects if the review failed. */
export interface AccessReviewer {
  isAllowed(question: AccessQuestion, options: Abortable): Promise<boolean>;
}

export interface AuthorizerOptions {
  readonly mode: "AlwaysAllow" | "Webhook";
  readonly allowedTtlMs: number;
  readonly deniedTtlMs: number;
}

const REVIEW_MS = 30_000;
const MOST_ANSWERS = 4096;
/** Longer reviews are not cached: clients choose the length of names. */
const LONGEST_KEPT = 10_000;

/** Authorizes users, and caches the results. */
export class Authorizer {
  private readonly answers: TtlCache<boolean>;

  constructor(
    private readonly deps: { clock: Clock; reviewer?: AccessReviewer | undefined },
    private readonly options: Live<AuthorizerOptions>,
  ) {
    this.answers = new TtlCache(deps.clock, MOST_ANSWERS);
  }

  /** Rejects if the review failed. */
  async isAllowed(question: AccessQuestion, { signal }: Abortable): Promise<boolean> {
    const { mode, allowedTtlMs, deniedTtlMs } = this.options.current;
    if (mode === "AlwaysAllow") return true;
    const { reviewer, clock } = this.deps;
    if (reviewer === undefined) throw new Error("review access: there is no API server");
    const { user, verb, subresource } = question;
    const key = JSON.stringify([user.name, user.uid ?? "", user.groups, user.extra ?? {}, verb, subresource]);
    const isKept = key.length <= LONGEST_KEPT;
    const kept = isKept ? this.answers.get(key) : undefined;
    if (kept !== undefined) return kept;
    const isAllowed = await withScope([signal], { clock, ms: REVIEW_MS }, (limited) =>
      reviewer.isAllowed(question, { signal: limited }),
    );
    if (isKept) this.answers.set(key, isAllowed, isAllowed ? allowedTtlMs : deniedTtlMs);
    return isAllowed;
  }
}
