import type { Pod } from "../../model/generated/types.ts";
import { type AdmissionNode, admit, type Rejection } from "./admission.ts";

/** The pods that count against the node's room, by how certain that is. */
export interface NodeLoad {
  /** Pods that run or start. */
  readonly active: readonly Pod[];
  /** Pods that are stopping: their room becomes free. */
  readonly stopping: readonly Pod[];
  /** Pods of an earlier run of the agent whose state has not been read from the runtime yet: they may have completed. */
  readonly unread: readonly Pod[];
}

/** What becomes of a pod that asks for admission. */
export type AdmissionVerdict =
  | { readonly kind: "admitted" }
  | { readonly kind: "rejected"; readonly rejection: Rejection }
  /** It is asked again when another pod has stopped or has been read; `victims` are preempted for it. */
  | { readonly kind: "waits"; readonly why: string; readonly victims?: readonly Pod[]; readonly shortOf?: string };

/**
 * Decides about a pod that was added. It is rejected only if the pods that stop and those not read yet make no
 * difference; until then it waits. Pure.
 */
export function admissionVerdict(pod: Pod, load: NodeLoad, node: AdmissionNode): AdmissionVerdict {
  const { active, stopping, unread } = load;
  const now = admit(pod, { others: [...active, ...unread, ...stopping], node });
  if (now.kind === "admitted") return now;
  const { reason, message } = now.rejection;
  if (admit(pod, { others: [...active, ...unread], node }).kind === "admitted") {
    return { kind: "waits", why: `for others to end: ${message}` };
  }
  const later = admit(pod, { others: active, node });
  if (later.kind === "rejected") return { kind: "rejected", rejection: now.rejection };
  if (unread.length > 0) return { kind: "waits", why: `for the state of earlier pods: ${message}` };
  const victims = later.kind === "preempts" ? later.victims : [];
  return { kind: "waits", why: `for others to end: ${message}`, victims, shortOf: reason };
}
