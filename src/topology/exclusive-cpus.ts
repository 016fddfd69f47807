import type { Container, Pod } from "../model/generated/types.ts";
import { declaredContainers } from "../model/pod-facts.ts";
import type { CpuState } from "./cpu/cpu-state.ts";
import type { Demand } from "./demand.ts";

/**
 * True if the container has CPUs for itself, so that it needs no quota; without a container if the pod needs none: one of
 * its containers has CPUs, or all of them if the pod has pod-level resources, as in Kubernetes. Pure.
 */
export function hasExclusiveCpus(
  { state, demand }: { readonly state: CpuState; readonly demand: Demand },
  pod: Pod,
  container?: Container,
): boolean {
  const { uid = "" } = pod.metadata;
  const isDivided = state.podEntries.has(uid) || demand.isPodLevel(pod);
  const has = (each: Container): boolean =>
    state.exclusive(uid, each.name) !== undefined && (!isDivided || demand.cpus(pod, each) > 0);
  if (container !== undefined) return has(container);
  return isDivided ? declaredContainers(pod).every(has) : state.ofPod(uid).size > 0;
}
