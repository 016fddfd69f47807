import type { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import type { Abortable } from "../lib/abort.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import {
  ANYWHERE,
  type HintProvider,
  type Hints,
  nodesOf,
  type Readmission,
  type TopologyHint,
} from "../model/topology.ts";
import { type ChoiceFacts, chooseDevices } from "./choose.ts";
import { containerDemand, type Demand, podDemand } from "./demand.ts";
import { byNode, deviceIds, MOST_NODES } from "./device.ts";
import { DeviceMasks } from "./device-masks.ts";
import { FreeDevices } from "./free-devices.ts";
import { deviceHints, hasTopology } from "./hints.ts";
import type { DeviceInventory } from "./inventory.ts";
import type { PodDevices } from "./pod-devices.ts";
import { type Need, type Reservation, Reservations } from "./reservations.ts";

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
  /** Throws while it is not known what an earlier agent allocated. */
  ready(): void;
  /** Persists who has which devices; resolves when it is on disk. */
  save(): Promise<void>;
  /** The same without being waited for; a failure is logged. */
  saveLater(): void;
  /** Tells the pod's journal what it waits for; the result is called when it does not any more. */
  waiting(pod: Pod, what: string): () => void;
}

export interface DeviceAllocatorOptions {
  /** NUMA nodes of the machine. */
  readonly nodes: readonly number[];
  /** True if claims may provide extended resources instead of a plugin (gate DRAExtendedResource). */
  hasClaims(): boolean;
}

/**
 * Allocates devices of plugins to containers, once, at admission, as in Kubernetes: they are reserved at once, and the
 * container has them when the plugin has agreed. Only pods that need the same plugin wait for it.
 */
export class DeviceAllocator implements HintProvider {
  readonly name = "devices";
  private readonly reservations: Reservations;
  /** A plugin is asked by one pod at a time: those of Kubernetes never hear two calls at once. */
  private readonly turns = new KeyedMutex();
  /** Resources whose plugin is asked now. */
  private readonly asked = new Set<string>();
  /** How many saves were asked for, and the last of them that succeeded: what came after it may be missing on disk. */
  private readonly saves = { asked: 0, done: 0 };
  /** Of containers that are aligned to NUMA nodes, by the pods' UIDs: what they still lack is allocated by it later. */
  private readonly affinities = new Map<string, Map<string, TopologyHint>>();
  private readonly masks: DeviceMasks;
  private readonly unclaimed: FreeDevices;

  constructor(
    private readonly deps: DeviceAllocatorDeps,
    private readonly options: DeviceAllocatorOptions,
  ) {
    this.masks = new DeviceMasks(options.nodes);
    const reservations = new Reservations(deps.pods);
    this.reservations = reservations;
    this.unclaimed = new FreeDevices({
      inventory: deps.inventory,
      masks: this.masks,
      taken: (resource) => reservations.taken(resource),
      version: () => reservations.version,
    });
  }

  hints(pod: Pod, container: Container): Hints {
    const { uid = "" } = pod.metadata;
    return new Map(
      [...this.needs(pod, container)].map(([resource, amount]) => {
        const held = this.reservations.idsOf({ uid, container: container.name, resource }) ?? [];
        const reusable = (): readonly string[] => this.reservations.reusable(pod, container, { resource });
        return [resource, this.resourceHints(resource, amount, { held, reusable })];
      }),
    );
  }

  podHints(pod: Pod): Hints {
    const { uid = "" } = pod.metadata;
    return new Map(
      [...this.needs(pod, undefined)].map(([resource, amount]) => {
        const held = [...this.deps.pods.idsOf(uid, resource)];
        return [resource, this.resourceHints(resource, amount, { held, reusable: () => [] })];
      }),
    );
  }

  /** Throws an error that names the cause: the pod is then rejected with UnexpectedAdmissionError. */
  reserve(pod: Pod, container: Container, affinity: TopologyHint): undefined {
    const { uid = "" } = pod.metadata;
    if (affinity.numa !== undefined) this.keepAffinity(uid, container.name, affinity);
    const added: { readonly reservation: Reservation; readonly free: readonly string[] }[] = [];
    const needs = this.needs(pod, container);
    if (needs.size > 0) this.deps.ready();
    for (const [resource, required] of needs) {
      const need: Need = { key: { uid, container: container.name, resource }, container, required, affinity };
      if (this.isHeld(need) || this.reservations.of(need.key) !== undefined) continue;
      // Of each set of NUMA nodes, more are not looked at.
      const available = (): readonly string[] => this.unclaimed.first(resource, required + 1);
      const facts = { ...this.facts(pod, need), available, preferred: [] };
      const ids = chosen(chooseDevices(facts));
      // What is reused comes first, and was not free.
      added.push({ reservation: { need, ids }, free: ids.slice(facts.reusable.length) });
    }
    for (const { reservation, free } of added) {
      this.reservations.add(reservation);
      this.unclaimed.take(reservation.need.key.resource, free);
    }
  }

  /**
   * A pod needs its plugins back, as in Kubernetes. They have the time in which plugins register again after a start of
   * the agent: Kubernetes rejects the pod at once.
   */
  readmit(pod: Pod): Readmission {
    const { uid = "" } = pod.metadata;
    const { pods, inventory } = this.deps;
    let waits: Readmission;
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      for (const [resource, required] of this.needs(pod, container)) {
        const key = { uid, container: container.name, resource };
        // What it was never allocated is allocated when it starts.
        if (pods.get(key) === undefined) continue;
        if (inventory.isExpected(resource)) waits ??= { waits: `for device plugin ${resource} to register again` };
        else this.isHeld({ key, required });
      }
    }
    return waits;
  }

  /** Has the plugins agree to what is reserved for the pod (for one of its containers, if it is named). */
  async commit(pod: Pod, { signal, only }: Abortable & { readonly only?: string }): Promise<void> {
    const { uid = "" } = pod.metadata;
    const { reservations } = this;
    this.unclaimed.clear();
    const own = reservations.ofPod(uid).filter(({ need }) => only === undefined || only === need.key.container);
    try {
      for (const reservation of own) await this.complete(pod, reservation, { signal });
    } finally {
      reservations.forgetHandedOn(uid);
      reservations.drop(own);
    }
    if (own.length === 0) return;
    await this.save();
  }

  /** Allocates what a container lacks because it was admitted before the plugin of its resource registered. */
  async allocateMissing(pod: Pod, container: Container, { signal }: Abortable): Promise<void> {
    const { uid = "" } = pod.metadata;
    const lacks = (resource: string): boolean =>
      this.deps.pods.get({ uid, container: container.name, resource }) === undefined;
    if ([...this.needs(pod, container).keys()].some(lacks)) {
      this.reserve(pod, container, this.affinities.get(uid)?.get(container.name) ?? ANYWHERE);
      await this.commit(pod, { signal, only: container.name });
    } else if (this.saves.done < this.saves.asked && this.deps.pods.of(uid, container.name).size > 0) {
      // No container starts with devices that another agent would take for free.
      await this.save();
    }
  }

  /** The file is written later: an entry that outlives its pod is released when the sources of pods are ready. */
  release(uid: string): void {
    this.affinities.delete(uid);
    this.reservations.release(uid);
    this.unclaimed.clear();
    if (this.deps.pods.delete(uid)) this.deps.saveLater();
  }

  held(): Iterable<string> {
    // Pods that ended before the checkpoint could be read would have their devices for ever.
    this.deps.ready();
    return new Set([...this.deps.pods.uids(), ...this.reservations.uids()]);
  }

  free(resource: string): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const [mask, count] of this.unclaimed.counts(resource)) {
      for (const node of nodesOf(mask)) if (node < MOST_NODES) counts.set(node, (counts.get(node) ?? 0) + count);
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

  private keepAffinity(uid: string, container: string, affinity: TopologyHint): void {
    const own = this.affinities.get(uid) ?? new Map<string, TopologyHint>();
    this.affinities.set(uid, own.set(container, affinity));
  }

  private async save(): Promise<void> {
    const asked = ++this.saves.asked;
    await this.deps.save();
    this.saves.done = Math.max(this.saves.done, asked);
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
    of: { readonly held: readonly string[]; reusable(): readonly string[] },
  ): readonly TopologyHint[] | undefined {
    const { masks, unclaimed } = this;
    const all = this.deps.inventory.devices(resource);
    const devices = masks.countAll(all);
    if (!hasTopology(devices)) return undefined;
    const { held } = of;
    const facts = { devices, amount, nodes: masks.nodes };
    const none = new Map<bigint, number>();
    if (held.length > 0) {
      return held.length === amount ? deviceHints({ ...facts, available: masks.count(held, all), reusable: none }) : [];
    }
    const [available, handed] = [unclaimed.counts(resource), of.reusable()];
    if (sum(available.values()) + handed.length < amount) return [];
    return deviceHints({ ...facts, available, reusable: masks.count(handed, all) });
  }

  /** True if the container has its devices already. Throws why it cannot have them, in the words of Kubernetes. */
  private isHeld({ key, required }: Pick<Need, "key" | "required">): boolean {
    const { resource } = key;
    const { inventory, pods } = this.deps;
    const found = pods.get(key);
    const held = found === undefined ? undefined : deviceIds(found);
    if (held !== undefined && held.size !== required) {
      const change = `changed request for resource "${resource}" from ${held.size} to ${required}`;
      throw new Error(`pod "${key.uid}" container "${key.container}" ${change}`);
    }
    // Pods that run are not admitted again: this is a new pod, or one of which nothing ran when the agent started.
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
      const ids = await this.choose(pod, reservation, { signal });
      this.reservations.rechosen(reservation, ids);
      const answered = this.deps.waiting(pod, `for device plugin ${key.resource} to answer Allocate`);
      const answer = await plugins.allocate(key.resource, ids, { signal }).finally(answered);
      // Released meanwhile: another container may have the devices.
      if (this.reservations.of(key) !== reservation) throw new Error(`devices of ${key.resource} were released`);
      pods.set(key, { byNode: byNode(ids, inventory.devices(key.resource)), answer });
      this.reservations.drop([reservation]);
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
    const { inventory } = this.deps;
    const devices = inventory.devices(resource);
    return {
      resource,
      required,
      reusable: this.reservations.reusable(pod, container, { resource, most: required }),
      // Only if it is looked at: a pod may have thousands of containers that take devices over.
      available: () => {
        const isTaken = this.reservations.taken(resource, except);
        return [...inventory.healthy(resource)].filter((id) => !isTaken(id));
      },
      devices,
      affinity: hasTopology(this.masks.countAll(devices)) ? affinity.numa : undefined,
    };
  }
}

function sum(counts: Iterable<number>): number {
  let all = 0;
  for (const count of counts) all += count;
  return all;
}

function chosen(choice: ReturnType<typeof chooseDevices>): readonly string[] {
  if (choice.kind === "chosen") return choice.ids;
  throw new Error(choice.kind === "short" ? choice.why : "the choice of devices is open");
}
