import type { PersistentVolumeClaim, PersistentVolumeClaimCondition } from "../../model/generated/types.ts";

/** The conditions that belong to growing a volume. */
const RESIZE_CONDITIONS: ReadonlySet<string> = new Set([
  "FileSystemResizePending",
  "Resizing",
  "ControllerResizeError",
  "NodeResizeError",
]);

/** A strategic merge patch of a claim's status. */
export interface ClaimPatch {
  /** With a version the server refuses it if the claim has changed since. */
  readonly metadata?: { readonly resourceVersion: string };
  readonly status: Readonly<Record<string, unknown>>;
}

type Status = "NodeResizeInProgress" | "NodeResizeInfeasible";

/** The volume is being grown on the node. Pure, as the others here. */
export function inProgressPatch(claim: PersistentVolumeClaim): ClaimPatch {
  return { ...versionOf(claim), status: { allocatedResourceStatuses: statusOf("NodeResizeInProgress") } };
}

/** The volume has this size; without `hasSteps` the claim has only the fields of older controllers. */
export function finishedPatch(
  claim: PersistentVolumeClaim,
  { size, hasSteps }: { readonly size: string; readonly hasSteps: boolean },
): ClaimPatch {
  const statuses = claim.status?.allocatedResourceStatuses ?? {};
  const isOnly = Object.keys(statuses).every((name) => name === "storage");
  const gone = (claim.status?.conditions ?? []).filter(({ type }) => RESIZE_CONDITIONS.has(type));
  return {
    ...versionOf(claim),
    status: {
      capacity: { storage: size },
      ...((hasSteps || statuses["storage"] !== undefined) && {
        allocatedResourceStatuses: isOnly ? null : { storage: null },
      }),
      ...(gone.length > 0 && { conditions: gone.map(({ type }) => ({ $patch: "delete", type })) }),
    },
  };
}

/** The volume could not be grown; `isInfeasible`: and will not be, until the controller chooses another size. */
export function failedPatch(
  claim: PersistentVolumeClaim,
  { message, at, isInfeasible }: { readonly message: string; readonly at: number; readonly isInfeasible: boolean },
): ClaimPatch {
  const condition: PersistentVolumeClaimCondition = {
    type: "NodeResizeError",
    status: "True",
    lastTransitionTime: `${new Date(at).toISOString().slice(0, 19)}Z`,
    message: `failed to expand pvc with ${message}`,
  };
  const isKnown = (claim.status?.conditions ?? []).some(
    ({ type, status }) => type === condition.type && status === "True",
  );
  return {
    status: {
      ...(isInfeasible && { allocatedResourceStatuses: statusOf("NodeResizeInfeasible") }),
      // One that is there keeps its time and its words, as in Kubernetes.
      ...(!isKnown && { conditions: [condition] }),
    },
  };
}

function statusOf(storage: Status): { readonly storage: Status } {
  return { storage };
}

function versionOf({ metadata }: PersistentVolumeClaim): Pick<ClaimPatch, "metadata"> {
  const { resourceVersion } = metadata;
  return resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
}
