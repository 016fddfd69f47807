import type { PodStatus } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";

/** The exit code of a container of which nothing is left to tell how it ended. */
export const UNKNOWN_EXIT_CODE = 137;

/**
 * How the containers ended that the runtime had and no longer has (it lost its state, or somebody removed them), by
 * name, as the last status tells. Most pods have none.
 */
export function lostExits(
  status: PodStatus | undefined,
  { containers }: ObservedPod,
): ReadonlyMap<string, { readonly exitCode: number }> {
  const present = new Set(containers.map(({ name }) => name));
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {};
  const lost = new Map<string, { readonly exitCode: number }>();
  for (const { name, state } of [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]) {
    if (present.has(name)) continue;
    if (state?.terminated !== undefined) lost.set(name, { exitCode: state.terminated.exitCode });
    else if (state?.running !== undefined) lost.set(name, { exitCode: UNKNOWN_EXIT_CODE });
  }
  return lost;
}
