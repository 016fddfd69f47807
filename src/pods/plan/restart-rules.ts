import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";

/**
 * True if a terminated container is restarted: a sidecar always, else by the container's own rules and policy if it has
 * them, else by the pod's.
 */
export function mayRestart(pod: Pod, ended: Pick<ObservedContainer, "exitCode">, container?: Container): boolean {
  if (container?.restartPolicy !== undefined && ruleFor(container, ended.exitCode) !== undefined) return true;
  switch (container?.restartPolicy ?? pod.spec.restartPolicy) {
    case "Never":
      return false;
    case "OnFailure":
      return ended.exitCode !== 0;
    default:
      return true;
  }
}

/** The action of the first rule that matches the exit code. */
function ruleFor(container: Container, exitCode: number): "Restart" | "RestartAllContainers" | undefined {
  const rule = (container.restartPolicyRules ?? []).find(({ exitCodes }) => {
    const isNamed = exitCodes?.values?.includes(exitCode) === true;
    return exitCodes?.operator === "NotIn" ? !isNamed : isNamed;
  });
  return rule?.action === "Restart" || rule?.action === "RestartAllContainers" ? rule.action : undefined;
}

/** True if a container of the pod has a rule that restarts all containers. */
export function hasRestartAllRule(pod: Pod): boolean {
  return restartable(pod).some(({ restartPolicyRules }) =>
    (restartPolicyRules ?? []).some(({ action }) => action === "RestartAllContainers"),
  );
}

/** Returns the terminated containers of the newest sandbox whose rule restarts all containers. */
export function restartTriggers(pod: Pod, observed: ObservedPod): readonly ObservedContainer[] {
  const sandboxId = observed.sandboxes[0]?.id;
  return restartable(pod).flatMap((container) => {
    const newest = observed.containers.find(({ name }) => name === container.name);
    if (newest?.state !== "exited" || newest.sandboxId !== sandboxId || container.restartPolicy === undefined)
      return [];
    return ruleFor(container, newest.exitCode) === "RestartAllContainers" ? [newest] : [];
  });
}

function restartable({ spec }: Pod): readonly Container[] {
  return [...spec.containers, ...(spec.initContainers ?? [])];
}
