import type { ClaimDevice } from "../model/claim-device.ts";
import type { Container, ResourceHealth, ResourceStatus } from "../model/generated/types.ts";
import { isForRequest } from "./claim-record.ts";
import type { DeviceHealth } from "./device-health.ts";

export interface ResourceStatusFacts {
  /** The devices of an entry of `resources.claims`; undefined if its claim is not prepared. */
  devices(claim: string): readonly ClaimDevice[] | undefined;
  healthOf(device: ClaimDevice): DeviceHealth;
  /** The feature gate ResourceHealthStatusMessage is on. */
  readonly hasMessage: boolean;
}

/** The health of the devices that a container has from its claims, for `allocatedResourcesStatus`. Pure. */
export function claimStatuses(
  { resources }: Pick<Container, "resources">,
  { devices, healthOf, hasMessage }: ResourceStatusFacts,
): readonly ResourceStatus[] {
  const found = new Map<string, ResourceStatus>();
  for (const { name: claim, request = "" } of resources?.claims ?? []) {
    const own = (devices(claim) ?? []).filter((device) => isForRequest(device, request));
    const byId = new Map<string, ResourceHealth>();
    for (const device of own) {
      const resourceID = device.cdiDevices[0] ?? `${device.driver}/${device.pool}/${device.device}`;
      const { health, message } = healthOf(device);
      if (!byId.has(resourceID))
        byId.set(resourceID, {
          resourceID,
          ...(health !== undefined && { health }),
          ...(hasMessage && message !== "" && { message }),
        });
    }
    const name = request === "" ? `claim:${claim}` : `claim:${claim}/${request}`;
    if (byId.size > 0) found.set(name, { name, resources: [...byId.values()] });
  }
  return [...found.values()];
}
