import type { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import type { Abortable } from "../lib/abort.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { ANYWHERE, type HintProvider, type Hints, type TopologyHint } from "../model/topology.ts";
import { type ChoiceFacts, chooseDevices } from "./choose.ts";
import { containerDemand, type Demand, podDemand, reusableDevices } from "./demand.ts";
import { byNode, type DeviceKey, deviceIds } from "./device.ts";
import { deviceHints, hasTopology } from "./hints.ts";
import type { DeviceInventory } from "./inventory.ts";
import type { PodDevices } from "./pod-devices.ts";

/** The plugins, as far as allocation needs them. Calls reject with an error that names the resource. */
export interface AllocatingPlugins {
  allocate(resource: string, ids: readonly string[], options: Abortable): Promise<ContainerAllocateResponse>;
  /** What the plugin would choose; empty if it has no preference. */
  prefer(
    resource: string,
    choice: { readonly offered: readonly string[]; readonly included: readonly string[]; readonly size: number },
    options: Abortable,
  ): Promise<readonly string[]>;
}

/** What `DeviceAllocator` is built from. */
export interface DeviceAllocatorDeps {
  readonly inventory: DeviceInventory;
  readonly pods: PodDevices;
  readonly plugins: AllocatingPlugins;
  /** Persists who has which devices; resolves when it is on disk. */
  save(): Promise<void>;
  /** Tells the pod's journal what it waits for; the result is called when it does not any more. */
  waiting(pod: Pod, what: string): () => void;
}

export interface DeviceAllocatorOptions {
  /** NUMA nodes of the machine. */
  readonly nodes: readonly number[];
  /** True if claims may provide extended resources instead of a plugin (gate DRAExtendedResource). */
  hasClaims(): boolean;
}

/** One resource that a container needs. */
interface Need {
  readonly key: DeviceKey;
  readonly container: Container;
  readonly required: number;
  readonly affinity: TopologyHint;
}

/** Devices that are chosen for a container while its plugin has not answered. */
interface Reservation {
  readonly need: Need;
  ids: readonly string[];
}

/**
 * Allocates devices of plugins to containers, once, at admission, as in Kubernetes: they are reserved at once, and the
 * container has them when the plugin has agreed. Only pods that need the same plugin wait for it.
 */
export class DeviceAllocator implements HintProvider {
  readonly name = "devices";
  /** By the pods' UIDs, in the order in which containers start. */
  private readonly reserved = new Map<string, Reservation[]>();
  /** A plugin is asked by one pod at a time: those of Kubernetes never hear two calls at once. */
  private readonly turns = new KeyedMutex();
  /** Resources whose plugin is asked now. */
  private readonly asked = new Set<string>();
  /** The last save failed: what is allocated may be missing on disk. */
  private isUnsaved = false;

  constructor(
    private readonly deps: DeviceAllocatorDeps,
    private readonly options: DeviceAllocatorOptions,
  ) {}

  hints(pod: Pod, container: Container): Hints {
    const { uid = "" } = pod.metadata;
    return new Map(
      [...this.needs(pod, container)].map(([resource, amount]) => {
        const held = this.idsOf({ uid, container: container.name, resource }) ?? [];
        const reusable = this.reusable(pod, container, resource);
        return [resource, this.resourceHints(resource, amount, { held: [...held], reusable })];
      }),
    );
  }

  podHints(pod: Pod): Hints {
    const { uid = "" } = pod.metadata;
    return new Map(
      [...this.needs(pod, undefined)].map(([resource, amount]) => {
        const held = [...this.deps.pods.idsOf(uid, resource)];
        return [resource, this.resourceHints(resource, amount, { held, reusable: [] })];
      }),
    );
  }

  /** Throws an error that names the cause: the pod is then rejected with UnexpectedAdmissionError. */
  reserve(pod: Pod, container: Container, affinity: TopologyHint): undefined {
    const { uid = "" } = pod.metadata;
    const added: Reservation[] = [];
    for (const [resource, required] of this.needs(pod, container)) {
      const need: Need = { key: { uid, container: container.name, resource }, container, required, affinity };
      if (this.isHeld(need) || this.reservationOf(need.key) !== undefined) continue;
      const facts = this.facts(pod, need);
      added.push({ need, ids: chosen(chooseDevices({ ...facts, preferred: [] })) });
    }
    if (added.length > 0) this.reserved.set(uid, [...(this.reserved.get(uid) ?? []), ...added]);
  }

  /** Has the plugins agree to what is reserved for the pod (for one of its containers, if it is named). */
  async commit(pod: Pod, { signal, only }: Abortable & { readonly only?: string }): Promise<void> {
    const { uid = "" } = pod.metadata;
    const own = (this.reserved.get(uid) ?? []).filter(({ need }) => only === undefined || only === need.key.container);
    if (own.length === 0) return;
    try {
      for (const reservation of own) await this.complete(pod, reservation, { signal });
    } finally {
      this.drop(uid, own);
    }
    await this.save();
  }

  /** Allocates what a container lacks because it was admitted before the plugin of its resource registered. */
  async allocateMissing(pod: Pod, container: Container, { signal }: Abortable): Promise<void> {
    const { uid = "" } = pod.metadata;
    const lacks = (resource: string): boolean =>
      this.deps.pods.get({ uid, container: container.name, resource }) === undefined;
    if ([...this.needs(pod, container).keys()].some(lacks)) {
      this.reserve(pod, container, ANYWHERE);
      await this.commit(pod, { signal, only: container.name });
    } else if (this.isUnsaved) {
      // No container starts with devices that another agent would take for free.
      await this.save();
    }
  }

  /** The file is written later: an entry that outlives its pod is released when the sources of pods are ready. */
  release(uid: string): void {
    this.reserved.delete(uid);
    if (this.deps.pods.delete(uid)) void this.deps.save().catch(() => undefined);
  }

  held(): Iterable<string> {
    return new Set([...this.deps.pods.uids(), ...this.reserved.keys()]);
  }

  free(resource: string): ReadonlyMap<number, number> {
    const devices = this.deps.inventory.devices(resource);
    const counts = new Map<number, number>();
    for (const id of this.available(resource)) {
      for (const node of devices.get(id)?.nodes ?? []) counts.set(node, (counts.get(node) ?? 0) + 1);
    }
    return counts;
  }

  needs(pod: Pod, container: Container | undefined): Demand {
    const isDevice = (resource: string, name: string | undefined): boolean =>
      this.isDevice(resource) && !this.isClaimed(pod, name, resource);
    return container === undefined ? podDemand(pod, isDevice) : containerDemand(container, isDevice);
  }

  /** True for a resource of a plugin, also of a removed one whose devices containers still have. */
  isDevice(resource: string): boolean {
    return this.deps.inventory.has(resource) || this.deps.pods.allocated(resource).size > 0;
  }

  private async save(): Promise<void> {
    this.isUnsaved = true;
    await this.deps.save();
    this.isUnsaved = false;
  }

  private isClaimed(pod: Pod, container: string | undefined, resource: string): boolean {
    if (!this.options.hasClaims()) return false;
    const mappings = pod.status?.extendedResourceClaimStatus?.requestMappings ?? [];
    return mappings.some(
      ({ containerName, resourceName }) =>
        resourceName === resource && (container === undefined || containerName === container),
    );
  }

  private resourceHints(
    resource: string,
    amount: number,
    { held, reusable }: { readonly held: readonly string[]; readonly reusable: readonly string[] },
  ): readonly TopologyHint[] | undefined {
    const devices = this.deps.inventory.devices(resource);
    if (!hasTopology(devices)) return undefined;
    const of = { devices, amount, nodes: this.options.nodes };
    if (held.length > 0) return held.length === amount ? deviceHints({ ...of, available: held, reusable: [] }) : [];
    const available = this.available(resource);
    return available.length + reusable.length < amount ? [] : deviceHints({ ...of, available, reusable });
  }

  /** Healthy devices that no container has and that are reserved for none, the given one apart. */
  private available(resource: string, except?: Reservation): readonly string[] {
    const allocated = this.deps.pods.allocated(resource);
    const taken = new Set<string>();
    for (const reservation of [...this.reserved.values()].flat()) {
      if (reservation === except || reservation.need.key.resource !== resource) continue;
      for (const id of reservation.ids) taken.add(id);
    }
    // Of what it has, later containers of the pod may have reserved a part, to take it over.
    for (const id of except?.ids ?? []) taken.delete(id);
    return [...this.deps.inventory.healthy(resource)].filter((id) => !allocated.has(id) && !taken.has(id));
  }

  private reservationOf({ uid, container, resource }: DeviceKey): Reservation | undefined {
    return this.reserved
      .get(uid)
      ?.find(({ need }) => need.key.container === container && need.key.resource === resource);
  }

  /** What the container has or is about to get. */
  private idsOf(key: DeviceKey): Iterable<string> | undefined {
    const found = this.deps.pods.get(key);
    return found === undefined ? this.reservationOf(key)?.ids : deviceIds(found);
  }

  private reusable(pod: Pod, container: Container, resource: string): readonly string[] {
    const { uid = "" } = pod.metadata;
    return reusableDevices(pod, container, (earlier) => this.idsOf({ uid, container: earlier, resource }) ?? []);
  }

  /** True if the container has its devices already. Throws why it cannot have them, in the words of Kubernetes. */
  private isHeld({ key, required }: Need): boolean {
    const { resource } = key;
    const { inventory, pods } = this.deps;
    const found = pods.get(key);
    const held = found === undefined ? undefined : deviceIds(found);
    if (held !== undefined && held.size !== required) {
      const change = `changed request for resource "${resource}" from ${held.size} to ${required}`;
      throw new Error(`pod "${key.uid}" container "${key.container}" ${change}`);
    }
    // Pods that run are not admitted again: this is a new pod, or one of before a reboot.
    if (!inventory.has(resource)) throw new Error(`cannot allocate unregistered device ${resource}`);
    const healthy = inventory.healthy(resource);
    const unhealthy = `cannot allocate unhealthy devices ${resource}`;
    if (healthy.size === 0) throw new Error(`no healthy devices present; ${unhealthy}`);
    if (held === undefined) return false;
    if ([...held].some((id) => !healthy.has(id))) {
      throw new Error(`previously allocated devices are no longer healthy; ${unhealthy}`);
    }
    return true;
  }

  private async complete(pod: Pod, reservation: Reservation, { signal }: Abortable): Promise<void> {
    const { plugins, pods, inventory } = this.deps;
    const { key } = reservation.need;
    const others = `for device plugin ${key.resource} to answer for another pod`;
    const itsTurn = this.asked.has(key.resource) ? this.deps.waiting(pod, others) : () => undefined;
    const ask = async (): Promise<void> => {
      itsTurn();
      this.asked.add(key.resource);
      reservation.ids = await this.choose(pod, reservation, { signal });
      const { ids } = reservation;
      const answered = this.deps.waiting(pod, `for device plugin ${key.resource} to answer Allocate`);
      const answer = await plugins.allocate(key.resource, ids, { signal }).finally(answered);
      // Released meanwhile: another container may have the devices.
      if (this.reservationOf(key) !== reservation) throw new Error(`devices of ${key.resource} were released`);
      pods.set(key, { byNode: byNode(ids, inventory.devices(key.resource)), answer });
      this.drop(key.uid, [reservation]);
    };
    const done = (): boolean => this.asked.delete(key.resource);
    await this.turns.run(key.resource, () => ask().finally(done), { signal }).finally(itsTurn);
  }

  /** Chooses anew: health may have changed, an init container may have other devices, and the plugin may prefer some. */
  private async choose(pod: Pod, reservation: Reservation, { signal }: Abortable): Promise<readonly string[]> {
    const { need } = reservation;
    const { resource } = need.key;
    const choice = chooseDevices(this.facts(pod, need, reservation));
    if (choice.kind !== "open") return chosen(choice);
    const answered = this.deps.waiting(pod, `for device plugin ${resource} to answer GetPreferredAllocation`);
    try {
      const preferred = await this.deps.plugins.prefer(resource, { ...choice, size: need.required }, { signal });
      return chosen(chooseDevices({ ...this.facts(pod, need, reservation), preferred }));
    } finally {
      answered();
    }
  }

  private facts(pod: Pod, { key, container, required, affinity }: Need, except?: Reservation): ChoiceFacts {
    const { resource } = key;
    const devices = this.deps.inventory.devices(resource);
    return {
      resource,
      required,
      reusable: this.reusable(pod, container, resource),
      available: this.available(resource, except),
      devices,
      affinity: hasTopology(devices) ? affinity.numa : undefined,
    };
  }

  private drop(uid: string, reservations: readonly Reservation[]): void {
    const left = (this.reserved.get(uid) ?? []).filter((each) => !reservations.includes(each));
    if (left.length === 0) this.reserved.delete(uid);
    else this.reserved.set(uid, left);
  }
}

function chosen(choice: ReturnType<typeof chooseDevices>): readonly string[] {
  if (choice.kind === "chosen") return choice.ids;
  throw new Error(choice.kind === "short" ? choice.why : "the choice of devices is open");
}
