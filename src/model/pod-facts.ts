import type { Container, Pod } from "./generated/types.ts";
import {
  CONFIG_MIRROR_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  SYSTEM_CRITICAL_PRIORITY,
  SYSTEM_NODE_CRITICAL,
} from "./labels.ts";
import type { PodIdentity } from "./step.ts";

/** Who the pod is; missing parts are empty texts. */
export function podIdentity(pod: Pod): PodIdentity {
  const { uid = "", name = "", namespace = "" } = pod.metadata;
  return { uid, name, namespace };
}

/** `NAME_NAMESPACE(UID)`, the form of logs and events. */
export function describePod(pod: Pod): string {
  const { uid, name, namespace } = podIdentity(pod);
  return `${name}_${namespace}(${uid})`;
}

/** True for a pod that came from a file or a URL. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];
  return source !== undefined && source !== "api";
}

/** True for the API server's picture of a static pod. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata.annotations?.[CONFIG_MIRROR_ANNOTATION] !== undefined;
}

/** Critical pods may push others out: static ones, mirrors, and those of a system priority. */
export function isCriticalPod(pod: Pod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;
}

/** Critical and of the class without which the node does not work. */
export function isNodeCriticalPod(pod: Pod): boolean {
  return isCriticalPod(pod) && pod.spec.priorityClassName === SYSTEM_NODE_CRITICAL;
}

/** Every container of the pod, of all three kinds. */
export function allContainers({ spec }: Pod): readonly Container[] {
  return [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])];
}

/** The containers that may have resources and a security context: regular and init, not ephemeral. */
export function declaredContainers({ spec }: Pod): readonly Container[] {
  return [...spec.containers, ...(spec.initContainers ?? [])];
}

/** In which list of the pod a container stands. */
export type ContainerKind = "init" | "regular" | "ephemeral";

/** The containers of one kind. */
export function containersOf({ spec }: Pod, kind: ContainerKind): readonly Container[] {
  if (kind === "regular") return spec.containers;
  return (kind === "init" ? spec.initContainers : spec.ephemeralContainers) ?? [];
}

/** True for a sidecar: an init container with restartPolicy Always. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === "Always";
}
