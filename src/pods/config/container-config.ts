import type { ContainerConfig, LinuxResources, RuntimeImage } from "../../adapters/runtime/port.ts";
import { expandWords } from "../../model/env-expand.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { CONTAINER_NAME_LABEL, POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL } from "../../model/labels.ts";
import { containerLogPath } from "../../model/names.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { containerSecurity, type SecurityFacts } from "./security.ts";

/** Upper limit of a command, and of its arguments: more than any kernel takes. */
const MOST_COMMAND_BYTES = 4 * 1024 * 1024;

/** What a container is made from besides its spec. */
export interface ContainerFacts extends Omit<SecurityFacts, "image"> {
  readonly attempt: number;
  readonly image: RuntimeImage;
  /** The reference to create from; the image's id. */
  readonly imageRef: string;
  readonly envs: ContainerConfig["envs"];
  readonly mounts: ContainerConfig["mounts"];
  readonly devices: ContainerConfig["devices"];
  readonly cdiDevices: ContainerConfig["cdiDevices"];
  readonly annotations: ContainerConfig["annotations"];
  readonly resources: LinuxResources;
}

/** Returns the runtime's container for this spec. Pure; throws a `ConfigError` where the spec cannot be honoured. */
export function containerConfig(pod: Pod, container: Container, facts: ContainerFacts): ContainerConfig {
  const identity = podIdentity(pod);
  const { attempt, envs, mounts, devices, cdiDevices, annotations, resources } = facts;
  const byName = new Map(envs.map(({ name, value }) => [name, value]));
  const expanded = (words: readonly string[] | undefined): string[] =>
    expandWords(words ?? [], (name) => byName.get(name), MOST_COMMAND_BYTES);
  return {
    name: container.name,
    attempt,
    image: { ref: facts.imageRef, userSpecified: container.image ?? "" },
    command: expanded(container.command),
    args: expanded(container.args),
    workingDir: container.workingDir ?? "",
    envs,
    mounts,
    devices,
    cdiDevices,
    labels: {
      [POD_NAME_LABEL]: identity.name,
      [POD_NAMESPACE_LABEL]: identity.namespace,
      [POD_UID_LABEL]: identity.uid,
      [CONTAINER_NAME_LABEL]: container.name,
    },
    annotations,
    logPath: containerLogPath(container.name, attempt),
    stdin: container.stdin === true,
    stdinOnce: container.stdinOnce === true,
    tty: container.tty === true,
    ...(container.lifecycle?.stopSignal === undefined ? {} : { stopSignal: container.lifecycle.stopSignal }),
    linux: { resources, security: containerSecurity(pod, container, facts) },
  };
}
