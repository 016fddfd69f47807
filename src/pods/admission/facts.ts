import type { Pod, Taint } from "../../model/generated/types.ts";

/** Why a pod may not run here, in the words of Kubernetes (section 4 of the lifecycle reference). */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

/** The node, as far as it decides which pods it takes. */
export interface AdmissionNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** What pods may use, by resource; `pods` too. A resource that is not named is not known here. */
  readonly allocatable: Readonly<Record<string, string>>;
  /** `6.1.0-13-amd64` …: some sysctls are safe only from some release on. */
  readonly kernel: string;
  readonly hasAppArmor: boolean;
  /** The runtime can leave the image's own groups out; undefined when it has not said yet. */
  readonly hasStrictGroups: boolean | undefined;
  readonly allowedUnsafeSysctls: readonly string[];
}

export interface AdmissionFacts {
  /** Pods that run, start or still stop here, without the one in question. */
  readonly others: readonly Pod[];
  readonly node: AdmissionNode;
}

/** One rule: a reason to refuse the pod, or undefined. Pure. */
export type AdmissionCheck = (pod: Pod, facts: AdmissionFacts) => Rejection | undefined;

/** Whether a pod may have what it asks for now: `Deferred` may change, `Infeasible` cannot on this node. */
export type ResizeVerdict = (Rejection & { readonly reason: "Deferred" | "Infeasible" }) | undefined;
