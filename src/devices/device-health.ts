import type { ResourceStatus } from "../model/generated/types.ts";
import { deviceIds } from "./device.ts";
import type { DeviceInventory } from "./inventory.ts";
import type { PodDevices } from "./pod-devices.ts";

/**
 * Returns the health of a container's devices, for its status. A device whose plugin is gone, or that its plugin no
 * longer lists, is `Unknown`, as the API describes it.
 */
export function deviceHealth(
  { pods, inventory }: { readonly pods: PodDevices; readonly inventory: DeviceInventory },
  uid: string,
  container: string,
): readonly ResourceStatus[] {
  const health = (resource: string, id: string): string => {
    if (!inventory.isConnected(resource) || !inventory.devices(resource).has(id)) return "Unknown";
    return inventory.healthy(resource).has(id) ? "Healthy" : "Unhealthy";
  };
  return [...pods.of(uid, container)].map(([name, devices]) => ({
    name,
    resources: [...deviceIds(devices)].sort().map((id) => ({ resourceID: id, health: health(name, id) })),
  }));
}
