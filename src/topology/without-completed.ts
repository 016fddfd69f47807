import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import { qosClass } from "../model/qos.ts";
import { initialContainers } from "./initial-containers.ts";

/**
 * Returns the pod without its init containers that have completed: a container after them was created. Should they run
 * once more, in another sandbox, they share, as they do in a pod whose allocations were never lost. Pure.
 */
export function withoutCompleted(pod: Pod, observed: Pick<ObservedPod, "containers"> | undefined): Pod {
  const initial = initialContainers(pod);
  const counts = (observed?.containers ?? []).map(({ name }) => initial.countBefore(name));
  const completed = new Set(initial.names.slice(0, Math.max(0, ...counts)));
  if (completed.size === 0) return pod;
  const initContainers = (pod.spec.initContainers ?? []).filter(({ name }) => !completed.has(name));
  // Its class is that of all its containers.
  const status = { ...pod.status, qosClass: qosClass(pod) };
  return { ...pod, spec: { ...pod.spec, initContainers }, status };
}
