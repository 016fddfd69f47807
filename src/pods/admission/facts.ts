import type { Pod, Taint } from "../../model/generated/types.ts";
import type { Rejection } from "../../model/rejection.ts";

export type { Rejection } from "../../model/rejection.ts";

/** The node, as far as admission depends on it. */
export interface AdmissionNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Allocatable resources, `pods` included. A resource that is missing is unknown to the node. */
  readonly allocatable: Readonly<Record<string, string>>;
  /** Kernel release such as `6.1.0-13-amd64`: some sysctls are safe only from some release on. */
  readonly kernel: string;
  readonly hasAppArmor: boolean;
  /** True if the runtime supports supplementalGroupsPolicy Strict; undefined until it has reported. */
  readonly hasStrictGroups: boolean | undefined;
  readonly allowedUnsafeSysctls: readonly string[];
  /** False if the scheduler cannot have claimed devices for extended resources (gate DRAExtendedResource). */
  readonly claimsExtendedResources?: boolean;
  /** False if pods have no resources as a whole (gate PodLevelResources). */
  readonly hasPodLevelResources?: boolean;
  /** Tolerations may compare numbers (gate TaintTolerationComparisonOperators). */
  readonly comparesNumbers?: boolean;
  /** The features that the node declares; undefined if it declares none (gate NodeDeclaredFeatures). */
  readonly declaredFeatures?: readonly string[] | undefined;
  /** The conditions of pressure, such as `MemoryPressure`. */
  readonly pressure?: readonly string[];
  /** True while the node shuts down: no pod is admitted. */
  readonly isShuttingDown?: boolean;
}

export interface AdmissionFacts {
  /** Pods that count against the node's room, without the one in question. */
  readonly others: readonly Pod[];
  readonly node: AdmissionNode;
}

/** One rule: returns a rejection, or undefined. Pure. */
export type AdmissionCheck = (pod: Pod, facts: AdmissionFacts) => Rejection | undefined;

/** Whether a pod may have what it asks for now: `Deferred` may change, `Infeasible` cannot on this node. */
export type ResizeVerdict = (Rejection & { readonly reason: "Deferred" | "Infeasible" }) | undefined;
