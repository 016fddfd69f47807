import type { Pod } from "../../model/generated/types.ts";
import { type AdmissionNode, admit, type Rejection } from "./admission.ts";

/** The pods that count against the node's room, by how certain that is. */
export interface NodeLoad {
  /** Pods that run or start, and those of an earlier run of the agent that cannot be read. */
  readonly active: readonly Pod[];
  /** Pods that are stopping: their room becomes free. */
  readonly stopping: readonly Pod[];
  /** Pods of an earlier run of the agent whose state has not been read from the runtime yet: they may have completed. */
  readonly unread: readonly Pod[];
  /** Pods whose resources are reserved, and that may still be rejected. */
  readonly undecided?: readonly Pod[];
}

/** What becomes of a pod that asks for admission. */
export type AdmissionVerdict =
  | { readonly kind: "admitted" }
  /** `isShortage`: it asks for more than the node has; an allocator may have a better reason. */
  | { readonly kind: "rejected"; readonly rejection: Rejection; readonly isShortage?: true }
  /**
   * It is asked again when another pod has stopped or has been read; `victims` are preempted for it. `keepsRoom`: it counts
   * as undecided meanwhile.
   */
  | {
      readonly kind: "waits";
      readonly why: string;
      readonly victims?: readonly Pod[];
      readonly shortOf?: string;
      readonly keepsRoom?: true;
    };

/**
 * Decides about a pod that was added. It is rejected only if the pods that stop, those not read yet and those that are
 * not decided make no difference; until then it waits. Pure.
 */
export function admissionVerdict(pod: Pod, load: NodeLoad, node: AdmissionNode): AdmissionVerdict {
  const { active, stopping, unread, undecided = [] } = load;
  const now = admit(pod, { others: [...active, ...unread, ...stopping, ...undecided], node });
  if (now.kind === "admitted") return now;
  const { reason, message } = now.rejection;
  if (admit(pod, { others: [...active, ...unread], node }).kind === "admitted") {
    const what = undecided.length > 0 ? "to be admitted or to end" : "to end";
    return { kind: "waits", why: `for others ${what}: ${message}` };
  }
  const later = admit(pod, { others: active, node });
  if (later.kind === "rejected") return now.kind === "rejected" ? now : { kind: "rejected", rejection: now.rejection };
  if (unread.length > 0) return { kind: "waits", why: `for the state of earlier pods: ${message}` };
  const victims = later.kind === "preempts" ? later.victims : [];
  return { kind: "waits", why: `for others to end: ${message}`, victims, shortOf: reason };
}
