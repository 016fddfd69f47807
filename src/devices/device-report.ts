import type { DeviceReport } from "../model/topology-report.ts";
import type { DeviceInventory } from "./inventory.ts";
import type { PodDevices } from "./pod-devices.ts";

/** Names a pod, for people. */
type NamePod = (uid: string) => { readonly namespace: string; readonly pod: string };

/** Returns every device with its health, its NUMA nodes and who has it, for the drawing of the node. */
export function deviceReport(
  { pods, inventory }: { readonly pods: PodDevices; readonly inventory: DeviceInventory },
  nameOf: NamePod,
): readonly DeviceReport[] {
  const holders = new Map<string, DeviceReport["holder"]>();
  for (const { uid, container, resource, devices } of pods.entries()) {
    // Of an init container and the one that took its device over the last counts.
    for (const id of [...devices.byNode.values()].flat()) {
      holders.set(`${resource} ${id}`, { uid, ...nameOf(uid), container });
    }
  }
  return inventory.names().flatMap((resource) =>
    [...inventory.devices(resource).values()].map(({ id, nodes }) => ({
      resource,
      id,
      nodes,
      isHealthy: inventory.healthy(resource).has(id),
      holder: holders.get(`${resource} ${id}`),
    })),
  );
}
