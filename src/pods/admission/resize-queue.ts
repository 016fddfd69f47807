import type { Pod } from "../../model/generated/types.ts";
import { qosClass } from "../../model/qos.ts";
import { compareAmounts, ZERO } from "../../model/quantity.ts";
import { podRequests } from "../../model/resources.ts";
import { type AdmissionNode, resizeVerdict } from "./admission.ts";
import type { ResizeVerdict } from "./facts.ts";
import { shortages } from "./resources.ts";

/** A pod that runs: as it is wanted, and with the requests and limits that it was given. */
export interface AllocatedPod {
  readonly desired: Pod;
  readonly allocated: Pod;
}

/**
 * Decides resizes in the order of Kubernetes, independent of who asks first: a deferred one gets no room that a
 * deferred one before it could use.
 */
export class ResizeQueue {
  /** UIDs of deferred resizes, and their turn: lower has waited longer. */
  private readonly deferred = new Map<string, number>();
  private turns = 0;

  /** Decides whether the pod may have what it asks for now. `others` are the pods on the node without this one. */
  verdict(pod: AllocatedPod, others: readonly AllocatedPod[], node: AdmissionNode): ResizeVerdict {
    const uid = uidOf(pod);
    const ahead = others
      .filter((other) => this.deferred.has(uidOf(other)) && this.compare(other, pod) < 0)
      .sort((a, b) => this.compare(a, b));
    const found = resizeVerdict(pod.desired, { others: afterResizes(others, ahead, node), node });
    if (found?.reason !== "Deferred") this.deferred.delete(uid);
    else if (!this.deferred.has(uid)) this.deferred.set(uid, this.turns++);
    return found;
  }

  /** Call when the pod stops. */
  delete(uid: string): void {
    this.deferred.delete(uid);
  }

  /** Those that need no more than they have, then higher priorities, then Guaranteed ones, then who waits longest. */
  private compare(a: AllocatedPod, b: AllocatedPod): number {
    const growth = Number(isGrowing(a)) - Number(isGrowing(b));
    const priority = (b.desired.spec.priority ?? 0) - (a.desired.spec.priority ?? 0);
    const qos = Number(isGuaranteed(b.desired)) - Number(isGuaranteed(a.desired));
    return growth || priority || qos || this.turnOf(a) - this.turnOf(b);
  }

  private turnOf(pod: AllocatedPod): number {
    return this.deferred.get(uidOf(pod)) ?? this.turns;
  }
}

/** The pods with what they will have once the resizes that fit, in this order, are done. Pure. */
function afterResizes(
  others: readonly AllocatedPod[],
  resizes: readonly AllocatedPod[],
  node: AdmissionNode,
): readonly Pod[] {
  const given = new Map(others.map((pod) => [uidOf(pod), pod.allocated]));
  for (const { desired } of resizes) {
    const uid = desired.metadata.uid ?? "";
    const rest = [...given].filter(([of]) => of !== uid).map(([, pod]) => pod);
    if (shortages(desired, { others: rest, node }).length === 0) given.set(uid, desired);
  }
  return [...given.values()];
}

function uidOf({ desired }: AllocatedPod): string {
  return desired.metadata.uid ?? "";
}

function isGuaranteed(pod: Pod): boolean {
  return qosClass(pod) === "Guaranteed";
}

function isGrowing({ desired, allocated }: AllocatedPod): boolean {
  const [after, before] = [podRequests(desired), podRequests(allocated)];
  return (["cpu", "memory"] as const).some((name) => compareAmounts(after[name] ?? ZERO, before[name] ?? ZERO) > 0);
}
