import type { Container, Pod } from "../model/generated/types.ts";
import { isZero, parseQuantity } from "../model/quantity.ts";

/** A claim of a pod, by the name of its object. */
export interface PodClaim {
  readonly name: string;
  /** It was created from a template for this pod: another owner's object of that name must not be used. */
  readonly isGenerated: boolean;
}

/** Whether the scheduler may have claimed devices for extended resources (feature gate DRAExtendedResource). */
export interface ClaimOptions {
  readonly hasExtendedResources: boolean;
}

const DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/";

/** The claims of a pod. Throws if the object of a template is not known yet. Claims that need no object are left out. */
export function podClaims(pod: Pod, options: ClaimOptions): readonly PodClaim[] {
  const found: PodClaim[] = [];
  for (const { name } of pod.spec.resourceClaims ?? []) {
    const claim = claimNamed(pod, name);
    if (claim !== undefined) found.push(claim);
  }
  const extended = options.hasExtendedResources ? pod.status?.extendedResourceClaimStatus : undefined;
  if (extended !== undefined) found.push({ name: extended.resourceClaimName, isGenerated: false });
  return found;
}

/** True if the pod has claims, whether their objects are known or not. */
export function hasClaims(pod: Pod, options: ClaimOptions): boolean {
  if ((pod.spec.resourceClaims ?? []).length > 0) return true;
  return options.hasExtendedResources && pod.status?.extendedResourceClaimStatus !== undefined;
}

/** What a container uses: names of claims with their requests; an empty request means the whole claim. */
export function containerRequests(
  pod: Pod,
  container: Pick<Container, "name" | "resources">,
  options: ClaimOptions,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  const add = (claim: string, request: string): void => {
    const requests = found.get(claim);
    if (requests === undefined) found.set(claim, [request]);
    else requests.push(request);
  };
  for (const { name, request } of container.resources?.claims ?? []) {
    const claim = claimNamed(pod, name);
    if (claim !== undefined) add(claim.name, request ?? "");
  }
  const extended = options.hasExtendedResources ? pod.status?.extendedResourceClaimStatus : undefined;
  const asked = extended === undefined ? new Set() : extendedRequests(container);
  for (const { containerName, resourceName, requestName } of extended?.requestMappings ?? []) {
    if (containerName !== container.name || !asked.has(resourceName)) continue;
    add(extended?.resourceClaimName ?? "", requestName);
  }
  return found;
}

/** The claim object behind an entry of `spec.resourceClaims`; undefined if none is needed. */
export function claimNamed(pod: Pod, entry: string): PodClaim | undefined {
  const claim = named(pod.spec.resourceClaims, entry);
  if (claim === undefined) return undefined;
  const where = `pod "${pod.metadata.namespace ?? ""}/${pod.metadata.name ?? ""}"`;
  if (claim.resourceClaimName !== undefined) return { name: claim.resourceClaimName, isGenerated: false };
  if (claim.resourceClaimTemplateName === undefined) {
    throw new Error(`${where}, spec.resourceClaim "${entry}": none of the supported fields are set`);
  }
  const status = named(pod.status?.resourceClaimStatuses, entry);
  if (status === undefined) throw new Error(`${where}: ResourceClaim not created yet`);
  return status.resourceClaimName === undefined ? undefined : { name: status.resourceClaimName, isGenerated: true };
}

/** Lists by the names of their entries: a pod may have tens of thousands, each of which is looked for. */
const indexes = new WeakMap<readonly Named[], ReadonlyMap<string, Named>>();

interface Named {
  readonly name: string;
}

/** The first entry of that name. Lists of pods never change. */
function named<T extends Named>(list: readonly T[] | undefined, name: string): T | undefined {
  if (list === undefined) return undefined;
  // reason: the index of a list has the entries of that list
  let index = indexes.get(list) as ReadonlyMap<string, T> | undefined;
  if (index === undefined) {
    // Of two with one name the first counts.
    index = new Map(list.map((each) => [each.name, each] as const).reverse());
    indexes.set(list, index);
  }
  return index.get(name);
}

function extendedRequests({ resources }: Pick<Container, "resources">): ReadonlySet<string> {
  const asked = Object.entries(resources?.requests ?? {}).filter(([name, value]) => {
    const isExtended = name.includes("/") && !/(^|\.)kubernetes\.io\//.test(name);
    return (isExtended || name.startsWith(DEVICE_CLASS_PREFIX)) && !isZero(parseQuantity(value));
  });
  return new Set(asked.map(([name]) => name));
}
