import type { Container, Pod } from "../model/generated/types.ts";
import type { TopologyHint } from "../model/topology.ts";
import { type DeviceKey, deviceIds } from "./device.ts";
import { HandedOn } from "./handed-on.ts";
import type { PodDevices } from "./pod-devices.ts";

/** One resource that a container needs. */
export interface Need {
  readonly key: DeviceKey;
  readonly container: Container;
  readonly required: number;
  readonly affinity: TopologyHint;
}

/** Devices that are chosen for a container while its plugin has not answered. */
export interface Reservation {
  readonly need: Need;
  readonly ids: readonly string[];
}

interface Kept extends Reservation {
  ids: readonly string[];
}

/** The devices that containers are about to get, beside those that they have. */
export class Reservations {
  /** By the pods' UIDs, then by container and resource, in the order in which containers start. */
  private readonly reserved = new Map<string, Map<string, Kept>>();
  /** By the UIDs of the pods that are being admitted. */
  private readonly handedOn = new Map<string, HandedOn>();
  private changes = 0;

  constructor(private readonly pods: PodDevices) {}

  /** Changes whenever something that was taken may be free again. */
  get version(): number {
    return this.pods.version + this.changes;
  }

  /** UIDs of pods that are about to get devices. */
  uids(): Iterable<string> {
    return this.reserved.keys();
  }

  of(key: DeviceKey): Reservation | undefined {
    return this.reserved.get(key.uid)?.get(keyOf(key));
  }

  ofPod(uid: string): readonly Reservation[] {
    return [...(this.reserved.get(uid)?.values() ?? [])];
  }

  add({ need, ids }: Reservation): void {
    const { uid, container } = need.key;
    const own = this.reserved.get(uid) ?? new Map<string, Kept>();
    own.set(keyOf(need.key), { need, ids });
    this.reserved.set(uid, own);
    this.handedOn.get(uid)?.changed(container);
  }

  /** Other devices were chosen; nothing happens if it was dropped meanwhile. */
  rechosen(reservation: Reservation, ids: readonly string[]): void {
    const { need, ids: before } = reservation;
    const kept = this.reserved.get(need.key.uid)?.get(keyOf(need.key));
    if (kept !== reservation) return;
    kept.ids = ids;
    if (ids.length === before.length && ids.every((id, at) => id === before[at])) return;
    this.changes++;
    this.handedOn.get(need.key.uid)?.changed(need.key.container);
  }

  drop(reservations: readonly Reservation[]): void {
    for (const reservation of reservations) {
      const { key } = reservation.need;
      // Released meanwhile and reserved anew, it is another one.
      if (this.of(key) !== reservation) continue;
      const own = this.reserved.get(key.uid);
      own?.delete(keyOf(key));
      if (own?.size === 0) this.reserved.delete(key.uid);
      this.changes++;
    }
  }

  /** The pod was admitted: what its containers hand on is not asked for again soon. */
  forgetHandedOn(uid: string): void {
    this.handedOn.delete(uid);
  }

  /** Drops what is reserved for the pod. */
  release(uid: string): void {
    if (this.reserved.delete(uid)) this.changes++;
    this.handedOn.delete(uid);
  }

  /** Returns whether a container has a device, or one is reserved for it, the given reservation apart. */
  taken(resource: string, except?: Reservation): (id: string) => boolean {
    const allocated = this.pods.allocated(resource);
    const taken = new Set<string>();
    for (const own of this.reserved.values()) {
      for (const reservation of own.values()) {
        if (reservation === except || reservation.need.key.resource !== resource) continue;
        for (const id of reservation.ids) taken.add(id);
      }
    }
    // Of what it has, later containers of the pod may have reserved a part, to take it over.
    for (const id of except?.ids ?? []) taken.delete(id);
    return (id) => allocated.has(id) || taken.has(id);
  }

  /** What the container has or is about to get. */
  idsOf(key: DeviceKey): readonly string[] | undefined {
    const found = this.pods.get(key);
    return found === undefined ? this.of(key)?.ids : [...deviceIds(found)];
  }

  /** At most so many devices that the container may take over from earlier init containers. */
  reusable(
    pod: Pod,
    container: Container,
    { resource, most = Infinity }: { readonly resource: string; readonly most?: number },
  ): readonly string[] {
    const { uid = "" } = pod.metadata;
    let handedOn = this.handedOn.get(uid);
    if (handedOn?.pod !== pod) {
      handedOn = new HandedOn(pod, (earlier, of) => this.idsOf({ uid, container: earlier, resource: of }));
      this.handedOn.set(uid, handedOn);
    }
    return handedOn.before(container.name, resource, most);
  }
}

function keyOf({ container, resource }: DeviceKey): string {
  return `${container} ${resource}`;
}
