import { messageOf } from "../../lib/errors.ts";
import type { ExecuteDeps, PodRun } from "../execute/context.ts";

/** Has the pod's resource claims prepared: its sandbox may need what their drivers set up. Nothing to do in most cases. */
export async function prepareClaims({ claims }: Pick<ExecuteDeps, "claims">, run: PodRun): Promise<void> {
  const { pod, journal, interrupt } = run;
  const names = (pod.spec.resourceClaims ?? []).map(({ name }) => name);
  if (pod.status?.extendedResourceClaimStatus !== undefined) names.push("extended resources");
  if (claims === undefined || names.length === 0) return;
  const step = journal.begin("claims", { detail: names.join(", ") });
  try {
    await claims.prepare(pod, { signal: interrupt });
    step.done(names.join(", "));
  } catch (error) {
    if (interrupt.aborted) step.abort();
    else {
      step.fail(error);
      const message = `Failed to prepare dynamic resources: ${messageOf(error)}`;
      journal.event("Warning", "FailedPrepareDynamicResources", message);
    }
    throw error;
  }
}
