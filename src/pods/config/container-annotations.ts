import { containerHash } from "../../model/container-hash.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import {
  CONTAINER_HASH_ANNOTATION,
  CONTAINER_PORTS_ANNOTATION,
  CONTAINER_RESTART_COUNT_ANNOTATION,
  CRASH_ANNOTATION,
  POD_DELETION_GRACE_PERIOD_ANNOTATION,
  POD_TERMINATION_GRACE_PERIOD_ANNOTATION,
  PRE_STOP_HANDLER_ANNOTATION,
  RESOURCES_ANNOTATION,
  TERMINATION_MESSAGE_PATH_ANNOTATION,
  TERMINATION_MESSAGE_POLICY_ANNOTATION,
} from "../../model/labels.ts";
import { type CrashState, formatCrash } from "../plan/crash-backoff.ts";

/** The annotations of a container that tell the next agent what its spec said. Pure. */
export function containerAnnotations(of: {
  readonly pod: Pod;
  readonly container: Container;
  readonly attempt: number;
  readonly crash?: CrashState | undefined;
}): Record<string, string> {
  const { pod, container, attempt, crash } = of;
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
