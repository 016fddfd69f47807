import { TimeLimitError } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Probe } from "../model/generated/types.ts";
import type { HandlerDeps, ProbeHandler, ProbeTarget, Verdict } from "./handlers/handler.ts";
import { timeoutOf } from "./spec.ts";

/** Tries of a probe that cannot be made, as in Kubernetes; a container that fails it is asked only once. */
const MOST_TRIES = 3;

/** One probe of one container instance. */
export interface ProbeCall {
  readonly handler: ProbeHandler;
  readonly probe: Probe;
  readonly target: ProbeTarget;
}

/** What came of it; `error` when even the last try could not be made. */
export type Ran = Verdict | { readonly result: "error"; readonly output: string };

/**
 * Makes one run. Rejects only when the controller is aborted from outside; its own time limit aborts it with a
 * `TimeLimitError`, so that whoever runs many needs a new controller only after one of those.
 */
export async function runProbe(
  deps: HandlerDeps & { clock: Clock },
  { handler, probe, target }: ProbeCall,
  controller: AbortController,
): Promise<Ran> {
  const { signal } = controller;
  const timeoutMs = timeoutOf(probe);
  // The runtime ends a command at its limit and says so itself, sometimes a little later.
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
