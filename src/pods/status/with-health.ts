import type { ContainerStatus, ResourceHealth, ResourceStatus } from "../../model/generated/types.ts";

/**
 * Adds the health of the container's devices to its status. Where a device has none yet, because the agent has just
 * started, the last status tells it; once the devices are released, what was last known stays. Pure.
 */
export function withHealth(
  { allocatedResourcesStatus: _before, ...status }: ContainerStatus,
  health: readonly ResourceStatus[],
  last: ContainerStatus | undefined,
): ContainerStatus {
  const before = last?.allocatedResourcesStatus ?? [];
  const isReleased = health.length === 0 && status.state?.terminated !== undefined;
  const known = isReleased ? before : health.map((each) => filled(each, before));
  return known.length === 0 ? status : { ...status, allocatedResourcesStatus: known };
}

function filled(status: ResourceStatus, before: readonly ResourceStatus[]): ResourceStatus {
  const old = before.find(({ name }) => name === status.name)?.resources ?? [];
  const resources = (status.resources ?? []).map((device): ResourceHealth => {
    if (device.health !== undefined) return device;
    return old.find(({ resourceID }) => resourceID === device.resourceID) ?? { ...device, health: "Unknown" };
  });
  return { ...status, resources };
}
