import type { ResourceHealth, ResourceStatus } from "../model/generated/types.ts";
import { deviceIds } from "./device.ts";
import type { DeviceInventory } from "./inventory.ts";
import type { PodDevices } from "./pod-devices.ts";

/**
 * Devices of one resource in the status of a container. Plugins that share out memory list thousands of them, and the
 * status of a pod would be larger than the API server takes: then those that are not healthy come first.
 */
const MOST_DEVICES = 512;

/**
 * Returns the health of a container's devices, for its status. A device whose plugin is gone, or that its plugin no
 * longer lists, is `Unknown`, as the API describes it; it is left out for a moment after a start of the agent, when
 * plugins are on their way back, so that the status keeps what it says.
 */
export function deviceHealth(
  { pods, inventory }: { readonly pods: PodDevices; readonly inventory: DeviceInventory },
  uid: string,
  container: string,
): readonly ResourceStatus[] {
  const health = (resource: string, id: string): { readonly health?: string } => {
    if (inventory.isConnected(resource) && inventory.devices(resource).has(id)) {
      return { health: inventory.healthy(resource).has(id) ? "Healthy" : "Unhealthy" };
    }
    return inventory.isExpected(resource) ? {} : { health: "Unknown" };
  };
  return [...pods.of(uid, container)].map(([name, devices]) => {
    const all = [...deviceIds(devices)].sort().map((id) => ({ resourceID: id, ...health(name, id) }));
    return { name, resources: all.length > MOST_DEVICES ? mostTelling(all) : all };
  });
}

function mostTelling(all: readonly ResourceHealth[]): ResourceHealth[] {
  const isWell = (one: ResourceHealth): boolean => one.health === "Healthy";
  return [...all.filter((one) => !isWell(one)), ...all.filter(isWell)].slice(0, MOST_DEVICES);
}
