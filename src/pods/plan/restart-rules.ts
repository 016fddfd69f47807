import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";

/**
 * Whether an ended container is started again (7.6): a sidecar always, by the container's own rules and policy where it
 * has one, else by the pod's.
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

/** What the first rule that names the exit code asks for. */
function ruleFor(container: Container, exitCode: number): "Restart" | "RestartAllContainers" | undefined {
  const rule = (container.restartPolicyRules ?? []).find(({ exitCodes }) => {
    const isNamed = exitCodes?.values?.includes(exitCode) === true;
    return exitCodes?.operator === "NotIn" ? !isNamed : isNamed;
  });
  return rule?.action === "Restart" || rule?.action === "RestartAllContainers" ? rule.action : undefined;
}

/** True when some container of the pod may ask for the restart of all. */
export function hasRestartAllRule(pod: Pod): boolean {
  return restartable(pod).some(({ restartPolicyRules }) =>
    (restartPolicyRules ?? []).some(({ action }) => action === "RestartAllContainers"),
  );
}

/** The ended containers of the newest sandbox whose rule asks for the restart of all (7.7). */
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
