import type { Pod } from "../../src/model/generated/types.ts";
import type { ContainerCreation } from "../../src/pods/execute/contributors/contributor.ts";

/** The creation of a pod's first container. */
export function creation(pod: Pod, more: Partial<ContainerCreation> = {}): ContainerCreation {
  const [container = { name: "" }] = pod.spec.containers;
  const { signal } = new AbortController();
  return {
    pod,
    container,
    attempt: 0,
    sandboxIps: [],
    imageVolumes: new Map(),
    interrupt: signal,
    finish: signal,
    ...more,
  };
}
