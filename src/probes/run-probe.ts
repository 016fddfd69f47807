import { TimeLimitError } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Probe } from "../model/generated/types.ts";
import type { HandlerDeps, ProbeHandler, ProbeTarget, Verdict } from "./handlers/handler.ts";
import { timeoutOf } from "./spec.ts";

/** Attempts of a probe that cannot be executed, as in Kubernetes; a failed probe is not retried. */
const MOST_TRIES = 3;

/** One probe of one container instance. */
export interface ProbeCall {
  readonly handler: ProbeHandler;
  readonly probe: Probe;
  readonly target: ProbeTarget;
}

/** Outcome of a run; `error` if the probe could not be executed in the last attempt either. */
export type Ran = Verdict | { readonly result: "error"; readonly output: string };

/**
 * Executes a probe once. Rejects only if the controller is aborted by the caller; the timeout aborts it with a
 * `TimeLimitError`, so that a caller needs a new controller only after one of those.
 */
export async function runProbe(
  deps: HandlerDeps & { clock: Clock },
  { handler, probe, target }: ProbeCall,
  controller: AbortController,
): Promise<Ran> {
  const { signal } = controller;
  const timeoutMs = timeoutOf(probe);
  // The runtime enforces the timeout of a command itself, sometimes a little later.
  const hasOwnLimit = handler.name === "exec";
  let output = "";
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const limit = hasOwnLimit
      ? undefined
      : deps.clock.after(timeoutMs, () => controller.abort(new TimeLimitError(timeoutMs)));
    try {
      return await handler.run(deps, probe, { target, signal, timeoutMs });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      output = messageOf(error);
    } finally {
      limit?.cancel();
    }
  }
  return { result: "error", output };
}
