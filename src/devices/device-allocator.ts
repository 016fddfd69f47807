import type { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { Rejection } from "../model/rejection.ts";
import { ANYWHERE, type Grant, type HintProvider, type Hints, type TopologyHint } from "../model/topology.ts";
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

/** Allocates devices of plugins to containers: once, at admission, as in Kubernetes. */
export class DeviceAllocator implements HintProvider {
  readonly name = "devices";
  /** Ids that are chosen while their plugin is asked, by resource. */
  private readonly pending = new Map<string, Set<string>>();
  /** The last save failed: what is allocated may be missing on disk. */
  private isUnsaved = false;

  constructor(
    private readonly deps: DeviceAllocatorDeps,
    private readonly options: DeviceAllocatorOptions,
  ) {}

  hints(pod: Pod, container: Container): Hints {
    const { pods } = this.deps;
    return new Map(
      [...this.needs(pod, container)].map(([resource, amount]) => {
        const found = pods.get({ uid: pod.metadata.uid ?? "", container: container.name, resource });
        const held = found === undefined ? [] : [...deviceIds(found)];
        const reusable = reusableDevices(pod, container, { pods, resource });
        return [resource, this.resourceHints(resource, amount, { held, reusable })];
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

  /** Rejects with an error that names the cause: the pod is then rejected with UnexpectedAdmissionError. */
  async allocate(pod: Pod, container: Container, { affinity, signal }: Grant): Promise<Rejection | undefined> {
    const { uid = "" } = pod.metadata;
    let hasChanged = false;
    for (const [resource, required] of this.needs(pod, container)) {
      const need = { key: { uid, container: container.name, resource }, container, required, affinity };
      if (this.isHeld(need)) continue;
      await this.allocateNeed(pod, need, { signal });
      hasChanged = true;
    }
    if (hasChanged) await this.save();
    return undefined;
  }

  /** Allocates what a container lacks because it was admitted before the plugin of its resource registered. */
  async allocateMissing(pod: Pod, container: Container, { signal }: Abortable): Promise<void> {
    const { uid = "" } = pod.metadata;
    const lacks = (resource: string): boolean =>
      this.deps.pods.get({ uid, container: container.name, resource }) === undefined;
    if ([...this.needs(pod, container).keys()].some(lacks)) {
      await this.allocate(pod, container, { affinity: ANYWHERE, signal });
    } else if (this.isUnsaved) {
      // No container starts with devices that another agent would take for free.
      await this.save();
    }
  }

  /** The file is written later: an entry that outlives its pod is released when the sources of pods are ready. */
  release(uid: string): void {
    if (this.deps.pods.delete(uid)) void this.deps.save().catch(() => undefined);
  }

  held(): Iterable<string> {
    return this.deps.pods.uids();
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

  private available(resource: string): readonly string[] {
    const allocated = this.deps.pods.allocated(resource);
    const pending = this.pending.get(resource);
    return [...this.deps.inventory.healthy(resource)].filter((id) => !allocated.has(id) && pending?.has(id) !== true);
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

  private async allocateNeed(pod: Pod, need: Need, { signal }: Abortable): Promise<void> {
    const { plugins, pods, inventory } = this.deps;
    const { key } = need;
    const ids = await this.choose(pod, need, { signal });
    const undo = this.reserve(key.resource, ids);
    const answered = this.deps.waiting(pod, `for device plugin ${key.resource} to answer Allocate`);
    try {
      const answer = await plugins.allocate(key.resource, ids, { signal });
      pods.set(key, { byNode: byNode(ids, inventory.devices(key.resource)), answer });
    } finally {
      answered();
      undo();
    }
  }

  private async choose(pod: Pod, need: Need, { signal }: Abortable): Promise<readonly string[]> {
    const { resource } = need.key;
    const choice = chooseDevices(this.facts(pod, need));
    if (choice.kind !== "open") return chosen(choice);
    const answered = this.deps.waiting(pod, `for device plugin ${resource} to answer GetPreferredAllocation`);
    try {
      const preferred = await this.deps.plugins.prefer(resource, { ...choice, size: need.required }, { signal });
      // Decided anew: the health of devices may have changed, and others may have got some.
      return chosen(chooseDevices({ ...this.facts(pod, need), preferred }));
    } finally {
      answered();
    }
  }

  private facts(pod: Pod, { key, container, required, affinity }: Need): ChoiceFacts {
    const { resource } = key;
    const devices = this.deps.inventory.devices(resource);
    return {
      resource,
      required,
      reusable: reusableDevices(pod, container, { pods: this.deps.pods, resource }),
      available: this.available(resource),
      devices,
      affinity: hasTopology(devices) ? affinity.numa : undefined,
    };
  }

  /** Keeps others from getting these ids; call the result when the allocation is recorded or has failed. */
  private reserve(resource: string, ids: readonly string[]): () => void {
    const pending = this.pending.get(resource) ?? new Set();
    this.pending.set(resource, pending);
    // One that an init container of the pod has may be reserved already.
    const added = ids.filter((id) => !pending.has(id));
    for (const id of added) pending.add(id);
    return () => {
      for (const id of added) pending.delete(id);
    };
  }
}

function chosen(choice: ReturnType<typeof chooseDevices>): readonly string[] {
  if (choice.kind === "chosen") return choice.ids;
  throw new Error(choice.kind === "short" ? choice.why : "the choice of devices is open");
}
