import type { DeviceClaim } from "../adapters/kubeapi/index.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ClaimRecord } from "./claim-record.ts";
import type { PodClaim } from "./pod-claims.ts";

const SCHEDULING_GROUP = "scheduling.k8s.io";

/** Checks that a pod may use a claim, and returns what to prepare. Throws if it may not, or if nothing is allocated. Pure. */
export function usableClaim(
  pod: Pod,
  claim: DeviceClaim,
  { isGenerated, acceptsGroups }: Pick<PodClaim, "isGenerated"> & { readonly acceptsGroups: boolean },
): Pick<ClaimRecord, "uid" | "name" | "namespace" | "drivers"> {
  const { uid = "", name = "", namespace = "" } = claim.metadata;
  const { uid: podUid = "", name: podName = "", namespace: podNamespace = "" } = pod.metadata;
  const group = acceptsGroups ? pod.spec.schedulingGroup?.podGroupName : undefined;
  if (isGenerated && !isOwned(pod, claim, group)) {
    const why = group === undefined ? "Pod is not owner" : `neither Pod nor PodGroup ${group} is the owner`;
    throw new Error(`ResourceClaim ${namespace}/${name} was not created for Pod ${podNamespace}/${podName} (${why})`);
  }
  if (!isReserved(pod, claim, group)) {
    throw new Error(`pod ${podName} (${podUid}) is not allowed to use ResourceClaim ${name} (${uid})`);
  }
  const { allocation } = claim.status ?? {};
  if (allocation === undefined) throw new Error(`ResourceClaim ${name}: not allocated`);
  const drivers = new Set((allocation.devices?.results ?? []).map(({ driver }) => driver));
  return { uid, name, namespace, drivers: new Map([...drivers].map((driver) => [driver, []])) };
}

/** `group`: the name of the pod's group, if its claims may be used by the pod. */
function isOwned(pod: Pod, claim: DeviceClaim, group: string | undefined): boolean {
  const owner = claim.metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return false;
  if (owner.uid === pod.metadata.uid) return true;
  return (
    group !== undefined &&
    owner.kind === "PodGroup" &&
    owner.name === group &&
    owner.apiVersion.startsWith(`${SCHEDULING_GROUP}/`)
  );
}

function isReserved(pod: Pod, claim: DeviceClaim, group: string | undefined): boolean {
  return (claim.status?.reservedFor ?? []).some(
    ({ uid, apiGroup, resource, name }) =>
      uid === pod.metadata.uid ||
      (group !== undefined && apiGroup === SCHEDULING_GROUP && resource === "podgroups" && name === group),
  );
}
