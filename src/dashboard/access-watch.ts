import type { RouteRequest } from "../adapters/net/http-route.ts";
import { AbortedError, AbortScope, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Wakes } from "../lib/wakes.ts";
import type { PageSection } from "../model/page-lines.ts";
import type { Gate } from "./gate.ts";

/** The access of who has a stream or a terminal open is checked again this often, in milliseconds. */
export const RECHECK_MS = 10_000;

/**
 * The scope of a request that is answered for long: it aborts when the client leaves, and soon after the caller has lost
 * one of these sections. A session that was ended is noticed at once. Aborting it ends the watch.
 */
export function whileAdmitted(
  { gate, clock }: { readonly gate: Gate; readonly clock: Clock },
  request: RouteRequest,
  sections: readonly PageSection[],
): AbortScope {
  const scope = new AbortScope([request.signal]);
  void watch({ gate, clock }, { request, sections, scope });
  return scope;
}

async function watch(
  { gate, clock }: { readonly gate: Gate; readonly clock: Clock },
  { request, sections, scope }: Watched,
): Promise<void> {
  const { signal } = scope;
  const wakes = new Wakes(clock);
  gate.onRevoked?.(() => wakes.wake(), { signal });
  const asked = { ...request, signal };
  try {
    for (;;) {
      await wakes.sleep(RECHECK_MS, signal);
      if (signal.aborted) return;
      const admitted = await Promise.all(sections.map((section) => gate.stillAdmits(asked, section)));
      if (admitted.includes(false)) scope.abort(new AbortedError("access was revoked"));
    }
  } catch (error) {
    if (!isAborted(error, signal)) throw error;
  } finally {
    scope.dispose();
  }
}

interface Watched {
  readonly request: RouteRequest;
  readonly sections: readonly PageSection[];
  readonly scope: AbortScope;
}
