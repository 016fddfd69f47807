import type { Container } from "../../model/generated/types.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { containerResources } from "../config/linux-resources.ts";
import { belowUsage } from "./below-usage.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";

/**
 * Gives a running container other limits; `begin` is awaited right before the runtime is called. A memory limit below
 * what it uses now is refused: it would be killed.
 */
export async function resizeContainer(
  deps: ExecuteDeps,
  run: PodRun,
  { running, spec, begin }: { running: ObservedContainer; spec: Container; begin: () => Promise<void> },
): Promise<void> {
  const resources = containerResources(run.pod, spec, deps.node.limits());
  const limit = resources.memoryLimitBytes;
  const usage = limit === undefined ? undefined : deps.cgroups.memoryUsage(run.pod, running.id);
  if (limit !== undefined && usage !== undefined && usage > limit) {
    throw belowUsage(`container ${JSON.stringify(spec.name)}`, limit, usage);
  }
  const step = run.journal.begin("resize", { container: spec.name });
  try {
    await begin();
    await deps.runtime.updateContainerResources(running.id, resources, { signal: run.finish });
    step.done();
  } catch (error) {
    step.fail(error);
    throw error;
  }
}
