import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import type { Clock } from "../lib/clock.ts";
import type { PageSection } from "../model/page-lines.ts";
import { whileAdmitted } from "./access-watch.ts";
import { type Gate, refuse } from "./gate.ts";

/** Streams, logs and terminals that may be open at a time, of all callers together. */
export const MOST_OPEN = 64;

/** Answers that go on for long: a bounded number of them, each until its caller leaves or has lost access. */
export class LongAnswers {
  private open = 0;

  constructor(private readonly deps: { readonly gate: Gate; readonly clock: Clock }) {}

  /** Answers with what `make` returns. Its signal aborts when the answer has to end. */
  async begin(
    request: RouteRequest,
    sections: readonly PageSection[],
    make: (request: RouteRequest) => RouteAnswer | Promise<RouteAnswer>,
  ): Promise<RouteAnswer> {
    if (this.open >= MOST_OPEN) {
      return refuse(503, `${MOST_OPEN} streams of the page are open, which is the most: close other tabs`);
    }
    this.open++;
    const scope = whileAdmitted(this.deps, request, sections);
    const { signal } = scope;
    signal.addEventListener("abort", () => this.open--, { once: true });
    if (signal.aborted) this.open--;
    try {
      const answer = await make({ ...request, signal });
      const isShort = answer.upgradeTo === undefined && typeof answer.body === "string";
      if (isShort) scope.abort();
      return isShort ? answer : { ...answer, until: signal };
    } catch (error) {
      scope.abort();
      throw error;
    }
  }
}
