import type { PersistentVolume, PersistentVolumeClaim } from "../../model/generated/types.ts";
import { type Amount, compareAmounts, isZero, tryParseQuantity, wholeValue, ZERO } from "../../model/quantity.ts";

/** What this agent knows of the size of a volume on its node. */
export interface ExpansionState {
  /** What was last seen to be done; undefined before the first look. */
  readonly size?: string;
  /** The last attempt failed for certain. */
  readonly hasFailed?: boolean;
  /** The driver does not grow volumes that are in use: it is not asked again as long as this one is. */
  readonly isRefused?: boolean;
}

/** What has to be done about the size of a claim's volume on this node. */
export type ExpansionPlan =
  | { readonly kind: "nothing" }
  /** The volume has this size: no further look is needed until the claim changes. */
  | { readonly kind: "done"; readonly size: string }
  /** It is the controller's turn. */
  | { readonly kind: "wait" }
  | { readonly kind: "readOnly" }
  | {
      readonly kind: "expand";
      readonly size: string;
      readonly bytes: number;
      /** The claim's status follows the steps; older controllers do not know these fields. */
      readonly hasSteps: boolean;
      /** The claim has this size already: another node was faster. */
      readonly isReported: boolean;
      /** The user wants another size by now: a failure leaves it to the controller. */
      readonly isInfeasibleOnFailure: boolean;
    };

export interface ExpansionFacts {
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
  /** As the pod uses it. */
  readonly readonly: boolean;
  /** The volume is being set up for a pod, as opposed to: the pod runs. */
  readonly isMounting: boolean;
  readonly state: ExpansionState;
}

/** Drivers that grow without the node say so here. */
const NOT_REQUIRED = "volume.kubernetes.io/node-expansion-not-required";

/** Decides as Kubernetes does. Pure. */
export function planExpansion(facts: ExpansionFacts): ExpansionPlan {
  const { claim, volume, readonly, isMounting, state } = facts;
  const wanted = volume.spec.capacity?.["storage"] ?? "";
  const reported = amount(claim.status?.capacity?.["storage"]);
  if (isMounting) {
    if (compareAmounts(reported, amount(wanted)) >= 0) return { kind: "nothing" };
    if (readonly) return { kind: "readOnly" };
  } else {
    const known = amount(state.size);
    const isDue = !isZero(known) && compareAmounts(amount(wanted), known) > 0;
    if (!isDue || readonly || state.isRefused === true) return { kind: "nothing" };
  }
  const { allocatedResources, allocatedResourceStatuses } = claim.status ?? {};
  const resizeStatus = allocatedResourceStatuses?.["storage"] ?? "";
  const hasSteps = resizeStatus !== "" || allocatedResources !== undefined;
  // Without the fields of newer controllers the volume's own size is what was asked for.
  const size = hasSteps ? (allocatedResources?.["storage"] ?? wanted) : wanted;
  const plan = { kind: "expand", size, bytes: wholeValue(amount(size)), hasSteps } as const;
  const isReported = compareAmounts(reported, amount(size)) >= 0 && resizeStatus === "";
  if (!hasSteps) return { ...plan, isReported, isInfeasibleOnFailure: false };
  const requested = amount(claim.spec.resources?.requests?.["storage"]);
  const isOther = compareAmounts(requested, amount(size)) !== 0;
  const isInfeasibleOnFailure = isOther && state.hasFailed === true;
  // A volume of many nodes has to be grown on each of them.
  const isShared = claim.spec.accessModes?.includes("ReadWriteMany") === true;
  const isNeeded = isShared && claim.metadata.annotations?.[NOT_REQUIRED] === undefined;
  const isPending = resizeStatus === "NodeResizePending" || resizeStatus === "NodeResizeInProgress";
  if ((isReported && isNeeded) || isPending) return { ...plan, isReported, isInfeasibleOnFailure };
  return isReported ? { kind: "done", size } : { kind: "wait" };
}

function amount(text: string | undefined): Amount {
  return tryParseQuantity(text ?? "") ?? ZERO;
}
