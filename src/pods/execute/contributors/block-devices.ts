import { ConfigError } from "../../../model/config-error.ts";
import type { ExecuteDeps } from "../context.ts";
import type { ContainerContributor } from "./contributor.ts";

/** The block volumes that a container asks for by `volumeDevices`. */
export function blockDevices({ volumes }: Pick<ExecuteDeps, "volumes">): ContainerContributor {
  return {
    name: "block volumes",
    contribute: ({ pod, container }) => ({
      devices: (container.volumeDevices ?? []).map(({ name, devicePath }) => {
        const source = volumes.source(pod, name);
        if (source.kind !== "device") {
          throw new ConfigError(`volume "${name}" is in volumeDevices, but it is not a block device`);
        }
        // Read, or read, write and mknod: as in Kubernetes.
        return { containerPath: devicePath, hostPath: source.path, permissions: source.readonly ? "r" : "mrw" };
      }),
    }),
  };
}
