import type { ContainerConfig, ContainerMount, IdMapping, RuntimeImage } from "../../adapters/runtime/port.ts";
import { containerHash } from "../../model/container-hash.ts";
import { expandEnv } from "../../model/env-expand.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import {
  CONTAINER_HASH_ANNOTATION,
  CONTAINER_NAME_LABEL,
  CONTAINER_PORTS_ANNOTATION,
  CONTAINER_RESTART_COUNT_ANNOTATION,
  CRASH_ANNOTATION,
  POD_DELETION_GRACE_PERIOD_ANNOTATION,
  POD_NAME_LABEL,
  POD_NAMESPACE_LABEL,
  POD_TERMINATION_GRACE_PERIOD_ANNOTATION,
  POD_UID_LABEL,
  PRE_STOP_HANDLER_ANNOTATION,
  RESOURCES_ANNOTATION,
  TERMINATION_MESSAGE_PATH_ANNOTATION,
  TERMINATION_MESSAGE_POLICY_ANNOTATION,
} from "../../model/labels.ts";
import { containerLogPath } from "../../model/names.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { type CrashState, formatCrash } from "../plan/crash-backoff.ts";
import { type EnvironmentFacts, environment } from "./environment.ts";
import { containerResources, type LimitFacts } from "./linux-resources.ts";
import { containerSecurity } from "./security.ts";

/** What a container is made from besides its spec. */
export interface ContainerFacts extends EnvironmentFacts {
  readonly attempt: number;
  readonly image: RuntimeImage;
  /** The reference to create from; the image's id. */
  readonly imageRef: string;
  readonly mounts: readonly ContainerMount[];
  readonly devices?: ContainerConfig["devices"];
  readonly seccompRoot: string;
  readonly extraMaskedPaths: readonly string[];
  readonly seccompDefault: boolean;
  readonly users?: IdMapping;
  /** See `SecurityFacts`. */
  readonly targetId?: string;
  readonly limits: LimitFacts;
  readonly crash?: CrashState;
}

/** The runtime's container for this spec (8.2). Pure; throws a ConfigError where the spec cannot be honoured. */
export function containerConfig(pod: Pod, container: Container, facts: ContainerFacts): ContainerConfig {
  const identity = podIdentity(pod);
  const envs = environment(pod, container, facts);
  const byName = new Map(envs.map(({ name, value }) => [name, value]));
  const expanded = (words: readonly string[] | undefined): string[] =>
    (words ?? []).map((word) => expandEnv(word, (name) => byName.get(name)));
  return {
    name: container.name,
    attempt: facts.attempt,
    image: { ref: facts.imageRef, userSpecified: container.image ?? "" },
    command: expanded(container.command),
    args: expanded(container.args),
    workingDir: container.workingDir ?? "",
    envs,
    mounts: facts.mounts,
    devices: facts.devices ?? [],
    labels: {
      [POD_NAME_LABEL]: identity.name,
      [POD_NAMESPACE_LABEL]: identity.namespace,
      [POD_UID_LABEL]: identity.uid,
      [CONTAINER_NAME_LABEL]: container.name,
    },
    annotations: annotationsOf(pod, container, facts),
    logPath: containerLogPath(container.name, facts.attempt),
    stdin: container.stdin === true,
    stdinOnce: container.stdinOnce === true,
    tty: container.tty === true,
    ...(container.lifecycle?.stopSignal === undefined ? {} : { stopSignal: container.lifecycle.stopSignal }),
    linux: {
      resources: containerResources(pod, container, facts.limits),
      security: containerSecurity(pod, container, facts),
    },
  };
}

function annotationsOf(pod: Pod, container: Container, facts: ContainerFacts): Record<string, string> {
  const { attempt, crash } = facts;
  const { resources } = container;
  const grace = pod.spec.terminationGracePeriodSeconds;
  const deletionGrace = pod.metadata.deletionGracePeriodSeconds;
  const preStop = container.lifecycle?.preStop;
  return {
    [CONTAINER_HASH_ANNOTATION]: containerHash(container),
    [CONTAINER_RESTART_COUNT_ANNOTATION]: String(attempt),
    [TERMINATION_MESSAGE_PATH_ANNOTATION]: container.terminationMessagePath ?? "",
    [TERMINATION_MESSAGE_POLICY_ANNOTATION]: container.terminationMessagePolicy ?? "",
    ...(deletionGrace === undefined ? {} : { [POD_DELETION_GRACE_PERIOD_ANNOTATION]: String(deletionGrace) }),
    ...(grace === undefined ? {} : { [POD_TERMINATION_GRACE_PERIOD_ANNOTATION]: String(grace) }),
    ...(preStop === undefined ? {} : { [PRE_STOP_HANDLER_ANNOTATION]: JSON.stringify(preStop) }),
    ...(crash === undefined ? {} : { [CRASH_ANNOTATION]: formatCrash(crash) }),
    ...(resources === undefined ? {} : { [RESOURCES_ANNOTATION]: JSON.stringify(resources) }),
    ...((container.ports?.length ?? 0) === 0 ? {} : { [CONTAINER_PORTS_ANNOTATION]: JSON.stringify(container.ports) }),
  };
}
