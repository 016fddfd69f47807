import type { ObservedPod } from "../../model/observed.ts";
import { resizedResources } from "../config/linux-resources.ts";
import { belowUsage } from "./below-usage.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";

/**
 * Tells the runtime what the whole pod has now. Its cgroup gets it from the worker: more of it before the containers,
 * less of it after them. A limit below what they use together is refused: one of them would be killed. `begin` is awaited
 * right before the runtime is called.
 */
export async function resizePod(
  deps: ExecuteDeps,
  run: PodRun,
  { sandboxId, observed, begin }: { sandboxId: string; observed: ObservedPod; begin: () => Promise<void> },
): Promise<void> {
  const limits = resizedResources(run.pod, deps.node.limits());
  const limit = limits.resources.memoryLimitBytes;
  if (limit !== undefined && run.pod.spec.resources !== undefined) {
    const running = observed.containers.filter(({ state }) => state === "running");
    const usage = running.reduce((sum, { id }) => sum + (deps.cgroups.memoryUsage(run.pod, id) ?? 0), 0);
    if (usage > limit) {
      throw belowUsage("pod", limit, usage);
    }
  }
  const step = run.journal.begin("resize", { detail: "the whole pod" });
  try {
    await begin();
    await deps.runtime.updateSandboxResources(sandboxId, limits, { signal: run.finish });
    step.done();
  } catch (error) {
    step.fail(error);
    throw error;
  }
}
