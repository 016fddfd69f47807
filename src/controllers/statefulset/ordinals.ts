import type { Pod, StatefulSet } from "../../model/generated/types.ts";

/** The number at the end of a pod's name, if the rest is the name of the set; else undefined. Pure. */
export function ordinalOf({ metadata }: Pod, set: StatefulSet): number | undefined {
  const prefix = `${set.metadata.name ?? ""}-`;
  const name = metadata.name ?? "";
  const number = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return /^\d+$/.test(number) ? Number(number) : undefined;
}

export function startOrdinal({ spec }: StatefulSet): number {
  return spec.ordinals?.start ?? 0;
}

export function replicasOf({ spec }: StatefulSet): number {
  return spec.replicas ?? 1;
}

/** Whether the set still wants the pod of a number. */
export function isInRange(ordinal: number, set: StatefulSet): boolean {
  const start = startOrdinal(set);
  return ordinal >= start && ordinal < start + replicasOf(set);
}

export function podNameOf({ metadata }: StatefulSet, ordinal: number): string {
  return `${metadata.name ?? ""}-${ordinal}`;
}
