import type { Pod } from "../../model/generated/types.ts";
import { isCriticalPod } from "../../model/pod-facts.ts";
import type { AdmissionCheck, AdmissionFacts, Rejection, ResizeVerdict } from "./facts.ts";
import {
  affinityProblem,
  appArmorProblem,
  featuresProblem,
  groupsProblem,
  nameProblem,
  osProblem,
  podLevelProblem,
  shutdownProblem,
  taintProblem,
} from "./node.ts";
import { portProblem } from "./ports.ts";
import { chooseVictims, type UnmetRequest } from "./preempt.ts";
import { pressureProblem } from "./pressure.ts";
import { shortageProblem, shortages } from "./resources.ts";
import { sysctlProblem } from "./sysctls.ts";

export type { AdmissionFacts, AdmissionNode, Rejection } from "./facts.ts";

/** The result of the admission checks. */
export type Admission =
  | { readonly kind: "admitted" }
  /** `isShortage`: it asks for more than the node has. */
  | { readonly kind: "rejected"; readonly rejection: Rejection; readonly isShortage?: true }
  /** The pod is critical, and fits once the victims have stopped. */
  | { readonly kind: "preempts"; readonly victims: readonly Pod[]; readonly rejection: Rejection };

/** Checks before the predicates; the first that fails decides. */
const FIRST: readonly AdmissionCheck[] = [shutdownProblem, pressureProblem, sysctlProblem, osProblem, groupsProblem];
/** Predicates after the resources. */
const PREDICATES: readonly AdmissionCheck[] = [affinityProblem, nameProblem, portProblem, taintProblem];
const LAST: readonly AdmissionCheck[] = [appArmorProblem, podLevelProblem, featuresProblem];

/** Decides whether a pod may run here. Runs once, when the pod is added; what runs already was admitted. Pure. */
export function admit(pod: Pod, facts: AdmissionFacts): Admission {
  const early = firstOf(FIRST, pod, facts);
  if (early !== undefined) return { kind: "rejected", rejection: early };
  const missing = shortages(pod, facts);
  const other = firstOf(PREDICATES, pod, facts) ?? firstOf(LAST, pod, facts);
  const [first] = missing;
  if (first === undefined) return other === undefined ? { kind: "admitted" } : { kind: "rejected", rejection: other };
  if (!isCriticalPod(pod)) return { kind: "rejected", rejection: shortageProblem(first), isShortage: true };
  // A critical pod is never rejected for a shortage itself: for another reason, or because preemption cannot end it.
  if (other !== undefined) return { kind: "rejected", rejection: other };
  const { victims, unmet } = chooseVictims(pod, facts.others, missing);
  if (unmet.length > 0) return { kind: "rejected", rejection: preemptionProblem(unmet), isShortage: true };
  return { kind: "preempts", victims, rejection: shortageProblem(first) };
}

/** Why no set of pods frees enough for a critical one, in the words of Kubernetes. */
function preemptionProblem(unmet: readonly UnmetRequest[]): Rejection {
  const list = unmet.map(({ resource, amount }) => `(res: ${resource}, q: ${amount}), `).join("");
  const why = `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [${list}]`;
  const message = `Unexpected error while attempting to recover from admission failure: ${why}`;
  return { reason: "UnexpectedAdmissionError", message };
}

/**
 * Decides about a resize: granted (undefined), or deferred until the pod would be admitted with what it asks for. As in
 * Kubernetes since 1.36, all rules of admission count, and more than the node has is deferred, too. Pure.
 */
export function resizeVerdict(pod: Pod, facts: AdmissionFacts): ResizeVerdict {
  const admission = admit(pod, facts);
  return admission.kind === "admitted" ? undefined : { reason: "Deferred", message: admission.rejection.message };
}

function firstOf(checks: readonly AdmissionCheck[], pod: Pod, facts: AdmissionFacts): Rejection | undefined {
  for (const check of checks) {
    const found = check(pod, facts);
    if (found !== undefined) return found;
  }
  return undefined;
}
