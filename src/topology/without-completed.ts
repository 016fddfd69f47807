import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import { qosClass } from "../model/qos.ts";
import { initialContainers } from "./initial-containers.ts";

/**
 * Returns the pod without its init containers that have completed: a container after them was created in the sandbox that
 * it has. In a new sandbox they run again. Pure.
 */
export function withoutCompleted(pod: Pod, observed: Pick<ObservedPod, "containers" | "sandboxes"> | undefined): Pod {
  const initial = initialContainers(pod);
  const current = observed?.sandboxes[0]?.state === "ready" ? observed.sandboxes[0].id : undefined;
  const created = (observed?.containers ?? []).filter(({ sandboxId }) => sandboxId === current);
  const counts = created.map(({ name }) => initial.countBefore(name));
  const completed = new Set(initial.names.slice(0, Math.max(0, ...counts)));
  if (completed.size === 0) return pod;
  const initContainers = (pod.spec.initContainers ?? []).filter(({ name }) => !completed.has(name));
  // Its class is that of all its containers.
  const status = { ...pod.status, qosClass: qosClass(pod) };
  return { ...pod, spec: { ...pod.spec, initContainers }, status };
}
