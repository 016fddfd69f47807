import { messageOf } from "../../../lib/errors.ts";
import { ConfigError } from "../../../model/config-error.ts";
import { type EnvFiles, envFileKey, envFileReferences, MOST_ENV_FILE_BYTES } from "../../../model/env-file.ts";
import { type EnvObjects, envReferences, readEnvObjects } from "../../../model/env-objects.ts";
import { podIdentity } from "../../../model/pod-facts.ts";
import { environment } from "../../config/environment.ts";
import { type ExecuteDeps, podIps } from "../context.ts";
import type { ContainerContributor, ContainerCreation } from "./contributor.ts";

/** The container's `env` and `envFrom`, and the variables of services. */
export function environmentVariables(deps: ExecuteDeps): ContainerContributor {
  return {
    name: "environment",
    overridesEnv: true,
    async contribute(creation) {
      const { pod, container, sandboxIps } = creation;
      const env = environment(pod, container, {
        podIps: podIps(deps, pod, sandboxIps),
        hostIps: deps.node.hostIps,
        allocatable: deps.node.allocatable(),
        objects: await envObjects(deps, creation),
        files: await envFiles(deps, creation),
        services: await serviceVariables(deps, creation),
      });
      return { env };
    },
  };
}

/** The objects that variables come from; an error is one of the configuration, as in Kubernetes. */
async function envObjects(deps: ExecuteDeps, { pod, container, finish }: ContainerCreation): Promise<EnvObjects> {
  const refs = envReferences(container, podIdentity(pod).namespace);
  try {
    return await readEnvObjects(deps.objects, refs, { signal: finish });
  } catch (error) {
    throw new ConfigError(messageOf(error), { cause: error });
  }
}

/** Files in emptyDir volumes, the only ones that may hold variables, as in Kubernetes: an init container wrote them. */
async function envFiles(deps: ExecuteDeps, { pod, container }: ContainerCreation): Promise<EnvFiles> {
  const files = new Map<string, string>();
  for (const ref of envFileReferences(container)) {
    const volume = pod.spec.volumes?.find(({ name }) => name === ref.volumeName);
    const source = volume?.emptyDir === undefined ? undefined : deps.volumes.source(pod, ref.volumeName);
    if (source?.kind !== "path") throw new ConfigError(`env file: volume "${ref.volumeName}" is not an emptyDir`);
    try {
      const text = await deps.files.readInside(source.path, ref.path, MOST_ENV_FILE_BYTES);
      if (text !== undefined) files.set(envFileKey(ref), text);
    } catch (error) {
      throw new ConfigError(`env file of volume "${ref.volumeName}": ${messageOf(error)}`, { cause: error });
    }
  }
  return files;
}

async function serviceVariables(
  { cluster }: ExecuteDeps,
  { pod, finish }: ContainerCreation,
): Promise<ReadonlyMap<string, string>> {
  try {
    return (await cluster?.serviceVariables(pod, { signal: finish })) ?? new Map();
  } catch (error) {
    throw new ConfigError(messageOf(error), { cause: error });
  }
}
