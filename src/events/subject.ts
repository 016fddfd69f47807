import type { Pod } from "../model/generated/types.ts";
import type { PodEvent } from "../model/step.ts";
import type { EventSubject } from "./correlate.ts";

/** The involved object of an event; undefined if it is no API object, such as a manifest file. Pure. */
export function eventSubject(event: PodEvent, pod: Pod | undefined, nodeName: string): EventSubject | undefined {
  const { uid, name, namespace } = event.pod;
  if (event.claim !== undefined) return { kind: "PersistentVolumeClaim", ...event.claim };
  if (uid === "") {
    return name === nodeName ? { kind: "Node", namespace: "default", name, uid: nodeName } : undefined;
  }
  const fieldPath = event.container === undefined ? undefined : fieldPathOf(pod, event.container);
  return { kind: "Pod", namespace, name, uid, ...(fieldPath !== undefined && { fieldPath }) };
}

function fieldPathOf(pod: Pod | undefined, container: string): string {
  const has = (list: readonly { readonly name: string }[] | undefined): boolean =>
    list?.some(({ name }) => name === container) ?? false;
  if (has(pod?.spec.initContainers)) return `spec.initContainers{${container}}`;
  return has(pod?.spec.ephemeralContainers)
    ? `spec.ephemeralContainers{${container}}`
    : `spec.containers{${container}}`;
}
