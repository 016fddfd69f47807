import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { act, inOrder, newestOf, type PlanContext, type PlanPart } from "./context.ts";
import type { PodAction } from "./pod-plan.ts";
import { planStart } from "./start.ts";

/** Why the pod needs another sandbox, or undefined if the newest one can be used. */
export function sandboxProblem(pod: Pod, observed: ObservedPod): string | undefined {
  const newest = observed.sandboxes[0];
  if (newest === undefined) return "no sandbox yet";
  if (observed.sandboxes.filter((sandbox) => sandbox.state === "ready").length > 1)
    return "more than one sandbox is ready";
  if (newest.state !== "ready") return "the sandbox is not ready";
  const hostNetwork = pod.spec.hostNetwork === true;
  if (newest.hostNetwork !== hostNetwork) return "the network namespace mode changed";
  if (!hostNetwork && newest.ips.length === 0) return "the sandbox has no IP";
  return undefined;
}

/** A new sandbox and the containers to start in it, or why the pod ends instead. */
export type SandboxPlan = PlanPart | { readonly finish: string };

/** Plans a new sandbox: everything starts again in it, except what must not run twice. */
export function planNewSandbox(context: PlanContext, problem: string): SandboxPlan {
  const { pod, observed, facts } = context;
  const newest = observed.sandboxes[0];
  // Only regular containers must not run twice: the loss of any other is no end of the pod.
  const hasLost = pod.spec.containers.some(({ name }) => facts.lost?.has(name) === true);
  const hasStarted = (newest !== undefined && observed.containers.length > 0) || hasLost;
  if (pod.spec.restartPolicy === "Never" && hasStarted) {
    return { finish: `${problem}, and the restart policy is Never` };
  }
  const starts = pod.spec.containers.filter((container) => !hasSucceededForGood(context, container));
  if (starts.length === 0) return { finish: "every container has succeeded" };
  const stop: PodAction[] = newest === undefined ? [] : [{ do: "stopPod", why: problem }];
  const create: PodAction = { do: "createSandbox", attempt: newest === undefined ? 0 : newest.attempt + 1 };
  const first = pod.spec.initContainers?.[0];
  const following =
    first === undefined
      ? starts.map((container) => planStart(context, container, "regular"))
      : [planStart(context, first, "init")];
  return inOrder(act(...stop, ...removeInit(context), create), ...following);
}

/** Init containers run again in a new sandbox: their earlier instances say nothing any more. */
function removeInit({ pod, observed }: PlanContext): PodAction[] {
  const names = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
  return observed.containers
    .filter(({ name }) => names.has(name))
    .map((container) => ({ do: "removeContainer", container }));
}

function hasSucceededForGood({ pod, observed, facts }: PlanContext, container: Container): boolean {
  if ((container.restartPolicy ?? pod.spec.restartPolicy) !== "OnFailure") return false;
  const newest = newestOf(observed, container.name);
  if (newest === undefined) return facts.lost?.get(container.name)?.exitCode === 0;
  return newest.state === "exited" && newest.exitCode === 0;
}
