import { containerHash } from "../../model/container-hash.ts";
import type { Pod } from "../../model/generated/types.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { PodAction } from "./pod-plan.ts";

/** What is wanted now. */
export interface WantedNow {
  readonly pod: Pod;
  readonly stop: { readonly graceSeconds: number } | undefined;
}

/** What a worker is doing, and what it was told when it began. */
export interface Acting {
  readonly action: PodAction;
  readonly pod: Pod;
  /** Set while the whole pod is being stopped. */
  readonly graceSeconds?: number;
}

/** Whether what goes on has lost its sense, so that it is aborted and planned anew. Pure. */
export function mustInterrupt(wanted: WantedNow, acting: Acting): boolean {
  if (wanted.stop !== undefined) {
    if (acting.graceSeconds === undefined) return true;
    return wanted.stop.graceSeconds < acting.graceSeconds;
  }
  if (acting.action.do !== "startContainer") return false;
  const { name } = acting.action.start;
  const before = find(acting.pod, name);
  const after = find(wanted.pod, name);
  return after === undefined || before === undefined || containerHash(before) !== containerHash(after);
}

function find(pod: Pod, name: string): { name: string; image?: string } | undefined {
  return allContainers(pod).find((container) => container.name === name);
}
