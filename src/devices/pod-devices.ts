import { type ContainerDevices, type DeviceKey, deviceIds } from "./device.ts";

type ByResource = Map<string, ContainerDevices>;

/** Which containers have which devices. The one owner of that fact: what is free follows from it. */
export class PodDevices {
  /** Changes with each change. */
  version = 0;
  private readonly pods = new Map<string, Map<string, ByResource>>();
  /** By resource, then by id: how many containers have it. Init containers share devices with the containers after them. */
  private readonly holders = new Map<string, Map<string, number>>();

  /** UIDs of pods that have devices. */
  uids(): readonly string[] {
    return [...this.pods.keys()];
  }

  has(uid: string): boolean {
    return this.pods.has(uid);
  }

  get({ uid, container, resource }: DeviceKey): ContainerDevices | undefined {
    return this.pods.get(uid)?.get(container)?.get(resource);
  }

  /** What a container has, by resource. */
  of(uid: string, container: string): ReadonlyMap<string, ContainerDevices> {
    return this.pods.get(uid)?.get(container) ?? new Map();
  }

  /** Ids of a resource that any container of the pod has. */
  idsOf(uid: string, resource: string): ReadonlySet<string> {
    const containers = [...(this.pods.get(uid)?.values() ?? [])];
    return new Set(containers.flatMap((of) => [...deviceIds(of.get(resource) ?? { byNode: new Map() })]));
  }

  /** Ids of a resource that some container has. */
  allocated(resource: string): { has(id: string): boolean; readonly size: number; keys(): Iterable<string> } {
    return this.holders.get(resource) ?? NONE;
  }

  /** Resources of which devices are allocated. */
  resources(): readonly string[] {
    return [...this.holders.keys()];
  }

  /** Pods that have one of these devices. One pass over all pods: there may be thousands of ids. */
  podsWith(resource: string, ids: ReadonlySet<string>): readonly string[] {
    if (this.allocated(resource).size === 0) return [];
    return this.uids().filter((uid) => [...this.idsOf(uid, resource)].some((id) => ids.has(id)));
  }

  set(key: DeviceKey, devices: ContainerDevices): void {
    this.version++;
    this.uncount(key);
    const containers = inMap(this.pods, key.uid, () => new Map<string, ByResource>());
    inMap(containers, key.container, () => new Map()).set(key.resource, devices);
    const counts = inMap(this.holders, key.resource, () => new Map());
    for (const id of deviceIds(devices)) counts.set(id, (counts.get(id) ?? 0) + 1);
  }

  /** Returns whether the pod had devices. */
  delete(uid: string): boolean {
    const containers = this.pods.get(uid);
    if (containers === undefined) return false;
    this.version++;
    for (const [container, resources] of containers) {
      for (const resource of resources.keys()) this.uncount({ uid, container, resource });
    }
    return this.pods.delete(uid);
  }

  /** Everything that is allocated, in no particular order. */
  *entries(): Generator<DeviceKey & { readonly devices: ContainerDevices }> {
    for (const [uid, containers] of this.pods) {
      for (const [container, resources] of containers) {
        for (const [resource, devices] of resources) yield { uid, container, resource, devices };
      }
    }
  }

  /** Takes the devices of a container off the counts; the caller replaces or removes its entry. */
  private uncount(key: DeviceKey): void {
    const before = this.get(key);
    const counts = this.holders.get(key.resource);
    if (before === undefined || counts === undefined) return;
    for (const id of deviceIds(before)) {
      const left = (counts.get(id) ?? 0) - 1;
      if (left > 0) counts.set(id, left);
      else counts.delete(id);
    }
    if (counts.size === 0) this.holders.delete(key.resource);
  }
}

const NONE: ReadonlyMap<string, number> = new Map();

function inMap<K, V>(map: Map<K, V>, key: K, fresh: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = fresh();
  map.set(key, made);
  return made;
}
