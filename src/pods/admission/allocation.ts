import type { Container, Pod, ResourceRequirements } from "../../model/generated/types.ts";
import { compareAmounts, parseQuantity } from "../../model/quantity.ts";

/** Allocated requests and limits by container name; those of the pod as a whole by `POD_LEVEL`. */
export type Allocation = ReadonlyMap<string, ResourceRequirements>;

/** The key of pod-level resources among container names: no container has this name. */
export const POD_LEVEL = "";

/** What may change while a container runs. */
const RESIZABLE = ["cpu", "memory"] as const;
export type Resizable = (typeof RESIZABLE)[number];

/** Returns the pod with its allocated resources; the same object if those are what it asks for. */
export function withAllocation(pod: Pod, allocation: Allocation): Pod {
  const { containers, initContainers } = pod.spec;
  const whole = { name: POD_LEVEL, resources: pod.spec.resources };
  const isAsAsked = [whole, ...containers, ...(initContainers ?? [])].every(
    ({ name, resources }) => changedResources(allocation.get(name) ?? resources, resources).length === 0,
  );
  if (isAsAsked) return pod;
  const given = (container: Container): Container => {
    const resources = allocation.get(container.name);
    return resources === undefined ? container : { ...container, resources };
  };
  const level = allocation.get(POD_LEVEL);
  return {
    ...pod,
    spec: {
      ...pod.spec,
      ...(level && { resources: level }),
      containers: containers.map(given),
      ...(initContainers && { initContainers: initContainers.map(given) }),
    },
  };
}

/** Returns what each container of the pod asks for. */
export function allocationOf({ spec }: Pod): Allocation {
  const all = [...spec.containers, ...(spec.initContainers ?? []), { name: POD_LEVEL, resources: spec.resources }];
  return new Map(all.map(({ name, resources }) => [name, resources ?? {}]));
}

/** Returns which of cpu and memory differ, in a request or in a limit. */
export function changedResources(
  before: ResourceRequirements | undefined,
  after: ResourceRequirements | undefined,
): readonly Resizable[] {
  return RESIZABLE.filter((name) =>
    (["requests", "limits"] as const).some((side) => !isSame(before?.[side]?.[name], after?.[side]?.[name])),
  );
}

function isSame(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return compareAmounts(parseQuantity(a), parseQuantity(b)) === 0;
}

/**
 * Returns which resources of a running container have to be resized: its own, or pod-level limits that it inherits.
 * `before` is undefined if unknown.
 */
export function changedOf(
  container: Container,
  before: { readonly own: ResourceRequirements | undefined; readonly pod: ResourceRequirements | undefined },
  pod: Pod,
): readonly Resizable[] {
  const own = before.own === undefined ? [] : changedResources(before.own, container.resources);
  if (before.pod === undefined) return own;
  const limits = pod.spec.resources?.limits;
  return RESIZABLE.filter((name) => {
    const isInherited = container.resources?.limits?.[name] === undefined;
    return own.includes(name) || (isInherited && !isSame(before.pod?.limits?.[name], limits?.[name]));
  });
}

/** True if the container's resizePolicy asks for a restart when one of these changes. */
export function needsRestart({ resizePolicy }: Container, changed: readonly Resizable[]): boolean {
  return (resizePolicy ?? []).some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === "RestartContainer" && changed.some((name) => name === resourceName),
  );
}
