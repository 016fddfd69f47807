import { containerHash } from "../../model/container-hash.ts";
import type { Pod } from "../../model/generated/types.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { PodAction } from "./pod-plan.ts";
import type { TerminationAction } from "./termination.ts";

/** What is wanted now. */
export interface WantedNow {
  readonly pod: Pod;
  readonly stop: { readonly graceSeconds: number } | undefined;
}

/** What a worker is doing, and what was wanted when it was planned. */
export interface Acting {
  readonly action: PodAction | TerminationAction;
  readonly pod: Pod;
  /** Set while the whole pod is being stopped. */
  readonly graceSeconds?: number;
}

/** True if the running action is obsolete, so that it is aborted and the pod planned again. Pure. */
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
