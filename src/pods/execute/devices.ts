import type { ContainerConfig } from "../../adapters/runtime/port.ts";
import { ConfigError } from "../../model/config-error.ts";
import type { Container } from "../../model/generated/types.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";

/** The block devices that a container asks for by `volumeDevices`. */
export function containerDevices(
  { volumes }: Pick<ExecuteDeps, "volumes">,
  { pod }: Pick<PodRun, "pod">,
  container: Container,
): ContainerConfig["devices"] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    const source = volumes.source(pod, name);
    if (source.kind !== "device")
      throw new ConfigError(`volume "${name}" is in volumeDevices, but it is no block device`);
    // Reading only, or reading, writing and making nodes of it: as in Kubernetes.
    return { containerPath: devicePath, hostPath: source.path, permissions: source.readonly ? "r" : "mrw" };
  });
}
