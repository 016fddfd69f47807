import { isDeepStrictEqual } from "node:util";
import type { Endpoint, EndpointSlice, EndpointSlicePort, ObjectMeta, Service } from "../../model/generated/types.ts";
import { type EndpointGroup, portsKey } from "./endpoints-of.ts";

/** Endpoints in one slice, as in Kubernetes by default. */
export const MAX_ENDPOINTS = 100;
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const HEADLESS_LABEL = "service.kubernetes.io/headless";
const MANAGER = "endpointslice-controller.k8s.io";
const RESERVED = [SERVICE_NAME_LABEL, MANAGED_BY_LABEL, HEADLESS_LABEL];

export interface SlicePlan {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly remove: readonly EndpointSlice[];
}

export interface SliceState {
  readonly service: Service;
  readonly addressType: string;
  readonly groups: ReadonlyMap<string, EndpointGroup>;
  /** Slices of this service and address type that this controller manages. */
  readonly existing: readonly EndpointSlice[];
}

/** True for slices that the controller may change. */
export function isManaged({ metadata }: EndpointSlice): boolean {
  return metadata.labels?.[MANAGED_BY_LABEL] === MANAGER;
}

interface Draft {
  readonly slice: EndpointSlice;
  endpoints: Endpoint[];
  isChanged: boolean;
}

/**
 * What to write so that the slices hold these endpoints, with as few writes as possible: endpoints stay where they are,
 * new ones fill slices that change anyway, then new slices. A service without endpoints has one empty slice. Pure.
 */
export function planSlices({ service, addressType, groups, existing }: SliceState): SlicePlan {
  const labels = labelsOf(service);
  const own = existing.filter((slice) => isOwned(slice, service));
  const create: EndpointSlice[] = [];
  const update: EndpointSlice[] = [];
  const remove = existing.filter((slice) => !isOwned(slice, service));
  const made = (ports: readonly EndpointSlicePort[], endpoints: readonly Endpoint[]): EndpointSlice => ({
    metadata: newMetadata(service, labels),
    addressType,
    ports,
    endpoints,
  });
  const wanted = groups.size === 0 ? new Map([["", { ports: [], endpoints: [] }]]) : groups;
  for (const [key, group] of wanted) {
    const drafts = own.filter(({ ports = [] }) => portsKey(ports) === key).map((slice) => keepWanted(slice, group));
    const rest = fill(drafts, missingFrom(drafts, group));
    for (let at = 0; at < rest.length; at += MAX_ENDPOINTS) {
      create.push(made(group.ports, rest.slice(at, at + MAX_ENDPOINTS)));
    }
    const used = drafts.filter(({ endpoints }) => endpoints.length > 0);
    // The empty slice of a service without endpoints stays.
    const kept = groups.size === 0 ? drafts.slice(0, 1) : used;
    if (groups.size === 0 && kept.length === 0) create.push(made([], []));
    for (const draft of drafts) {
      const { slice, endpoints, isChanged } = draft;
      if (!kept.includes(draft)) remove.push(slice);
      else if (isChanged || !isDeepStrictEqual(slice.metadata.labels ?? {}, labels)) {
        update.push({ ...slice, metadata: { ...slice.metadata, labels }, endpoints });
      }
    }
  }
  remove.push(...own.filter(({ ports = [] }) => !wanted.has(portsKey(ports))));
  return reuse({ create, update, remove }, service);
}

/** The endpoints of a slice that are still wanted, as they are now. */
function keepWanted(slice: EndpointSlice, group: EndpointGroup): Draft {
  const wanted = new Map(group.endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  const before = slice.endpoints ?? [];
  const endpoints = before.flatMap((endpoint) => wanted.get(endpointKey(endpoint)) ?? []);
  return { slice, endpoints, isChanged: !isDeepStrictEqual(endpoints, before) };
}

function missingFrom(drafts: readonly Draft[], { endpoints }: EndpointGroup): Endpoint[] {
  const placed = new Set<string>();
  for (const draft of drafts) {
    // One that two slices have goes from the second.
    const once = draft.endpoints.filter((endpoint) => !placed.has(endpointKey(endpoint)));
    if (once.length < draft.endpoints.length) draft.isChanged = true;
    draft.endpoints = once;
    for (const endpoint of once) placed.add(endpointKey(endpoint));
  }
  return endpoints.filter((endpoint) => !placed.has(endpointKey(endpoint)));
}

/** Puts endpoints into slices with room, those that change anyway first; returns what is left for new slices. */
function fill(drafts: readonly Draft[], added: readonly Endpoint[]): Endpoint[] {
  const rest = [...added];
  const byFullness = [...drafts].sort((a, b) => b.endpoints.length - a.endpoints.length);
  for (const draft of byFullness) if (draft.isChanged) take(draft, rest);
  // What fills a slice gets one of its own; only the remainder goes into one that had no change.
  const remainder = rest.length % MAX_ENDPOINTS;
  const room = byFullness.find(({ endpoints }) => endpoints.length + remainder <= MAX_ENDPOINTS);
  if (remainder === 0 || room === undefined) return rest;
  room.endpoints.push(...rest.splice(rest.length - remainder));
  room.isChanged = true;
  return rest;
}

function take(draft: Draft, rest: Endpoint[]): void {
  const moved = rest.splice(0, MAX_ENDPOINTS - draft.endpoints.length);
  draft.endpoints.push(...moved);
}

/** A slice that would go takes the content of one that would come: one write and no moment without it. */
function reuse({ create, update, remove }: SlicePlan, service: Service): SlicePlan {
  const spare = remove.filter((slice) => isOwned(slice, service));
  const pairs = create.slice(0, spare.length).map((next, index) => ({ next, old: spare[index] as EndpointSlice }));
  const replaced = pairs.map(({ next, old }) => ({
    ...old,
    metadata: { ...old.metadata, labels: next.metadata.labels ?? {} },
    ports: next.ports ?? [],
    endpoints: next.endpoints ?? [],
  }));
  const reused = new Set(pairs.map(({ old }) => old));
  return {
    create: create.slice(pairs.length),
    update: [...update, ...replaced],
    remove: remove.filter((slice) => !reused.has(slice)),
  };
}

function endpointKey({ targetRef, addresses }: Endpoint): string {
  return targetRef?.uid ?? addresses.join(",");
}

function isOwned({ metadata }: EndpointSlice, service: Service): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid, kind }) => kind === "Service" && uid === service.metadata.uid);
}

/** The service's own labels, and those that say what the slice is. */
function labelsOf({ metadata, spec }: Service): Readonly<Record<string, string>> {
  const given = Object.entries(metadata.labels ?? {}).filter(([key]) => !RESERVED.includes(key));
  const isHeadless = spec?.clusterIP === "None" || !spec?.clusterIP;
  return {
    ...Object.fromEntries(given),
    ...(isHeadless && { [HEADLESS_LABEL]: "" }),
    [SERVICE_NAME_LABEL]: metadata.name ?? "",
    [MANAGED_BY_LABEL]: MANAGER,
  };
}

function newMetadata({ metadata }: Service, labels: Readonly<Record<string, string>>): ObjectMeta {
  const { namespace = "", name = "", uid = "" } = metadata;
  return {
    generateName: `${name}-`,
    namespace,
    labels,
    ownerReferences: [{ apiVersion: "v1", kind: "Service", name, uid, controller: true, blockOwnerDeletion: true }],
  };
}
