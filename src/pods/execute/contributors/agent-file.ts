import type { ContainerMount } from "../../../adapters/runtime/port.ts";
import type { Container } from "../../../model/generated/types.ts";
import type { ExecuteDeps } from "../context.ts";

/** The mount of a file that the agent wrote for the container. */
export function agentFileMount(
  { node }: Pick<ExecuteDeps, "node">,
  containerPath: string,
  hostPath: string,
): ContainerMount {
  const label = node.hasSelinux === true ? { selinuxRelabel: true } : {};
  return { containerPath, hostPath, readonly: false, propagation: "private", ...label };
}

/** True if the container mounts a volume at this path itself: then the agent's own file gives way. */
export function hasVolumeAt({ volumeMounts }: Container, path: string): boolean {
  return (volumeMounts ?? []).some(({ mountPath }) => mountPath === path);
}
