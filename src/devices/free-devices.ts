import type { NumaMask } from "../model/topology.ts";
import type { DeviceMasks, MaskCounts } from "./device-masks.ts";
import type { DeviceInventory } from "./inventory.ts";

/** What is free of one resource. */
interface Free {
  /** The list that this was computed from; another list is another set. */
  readonly healthy: ReadonlySet<string>;
  readonly version: number;
  /** Places in the plugin's order. */
  readonly order: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<NumaMask, Set<string>>;
}

interface FreeDevicesDeps {
  readonly inventory: Pick<DeviceInventory, "healthy" | "devices">;
  readonly masks: DeviceMasks;
  /** Whether a container has the device, or is about to get it. */
  taken(resource: string): (id: string) => boolean;
  /** Changes whenever something that was taken may be free again. */
  version(): number;
}

/**
 * Healthy devices that no container has. They are found once for all containers of a pod, of which there may be thousands:
 * what is taken is removed.
 */
export class FreeDevices {
  private readonly known = new Map<string, Free>();

  constructor(private readonly deps: FreeDevicesDeps) {}

  /** How many there are, by NUMA nodes. */
  counts(resource: string): MaskCounts {
    return new Map([...this.of(resource).groups].map(([mask, ids]) => [mask, ids.size]));
  }

  /** Returns the first so many of each set of NUMA nodes, in the plugin's order: more are not needed for a choice. */
  first(resource: string, most: number): readonly string[] {
    const { groups, order } = this.of(resource);
    const found: string[] = [];
    for (const ids of groups.values()) {
      let left = most;
      for (const id of ids) {
        if (left-- <= 0) break;
        found.push(id);
      }
    }
    if (groups.size > 1) found.sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
    return found;
  }

  take(resource: string, ids: readonly string[]): void {
    const { inventory, masks } = this.deps;
    const devices = inventory.devices(resource);
    const groups = this.known.get(resource)?.groups;
    for (const id of ids) groups?.get(masks.of(devices.get(id)))?.delete(id);
  }

  /** Drops what was found, to free its memory. */
  clear(): void {
    this.known.clear();
  }

  private of(resource: string): Free {
    const { inventory, masks, taken, version } = this.deps;
    const healthy = inventory.healthy(resource);
    const before = this.known.get(resource);
    if (before?.healthy === healthy && before.version === version()) return before;
    const devices = inventory.devices(resource);
    const isTaken = taken(resource);
    const order = new Map<string, number>();
    const groups = new Map<NumaMask, Set<string>>();
    for (const id of healthy) {
      if (isTaken(id)) continue;
      order.set(id, order.size);
      const mask = masks.of(devices.get(id));
      const group = groups.get(mask);
      if (group === undefined) groups.set(mask, new Set([id]));
      else group.add(id);
    }
    const found = { healthy, version: version(), order, groups };
    this.known.set(resource, found);
    return found;
  }
}
