import type { CsiVolumeStats } from "../../adapters/plugins/csi-client.ts";
import type { VolumeSpace } from "../../model/usage.ts";
import type { SpaceSource } from "../kind.ts";
import type { CsiKindDeps } from "./request.ts";
import type { CsiVolume } from "./volume.ts";

const NONE = { available: 0, total: 0, used: 0 };

/** Returns how the driver is asked for the space of a volume that is published at a path. */
export function csiSpace(
  { driver: name, handle }: Pick<CsiVolume, "driver" | "handle">,
  path: string,
  { drivers, reportsHealth }: Pick<CsiKindDeps, "drivers" | "reportsHealth">,
): SpaceSource {
  return {
    path,
    driver: name,
    async read(options) {
      const driver = drivers.get(name);
      const { hasStats, hasCondition } = await driver.capabilities(options);
      if (!hasStats) return undefined;
      const stats = await driver.service.stats({ volumeId: handle, volumePath: path }, options);
      return spaceOf(stats, { hasHealth: reportsHealth && hasCondition });
    },
  };
}

/** What a driver that counts neither bytes nor inodes does not have is 0, as in Kubernetes. Pure. */
export function spaceOf(
  { bytes, inodes, condition }: CsiVolumeStats,
  { hasHealth }: { readonly hasHealth: boolean },
): VolumeSpace {
  if (!hasHealth && bytes === undefined && inodes === undefined) {
    throw new Error("failed to get usage from response. usage is nil");
  }
  const [space, nodes] = [bytes ?? NONE, inodes ?? NONE];
  return {
    device: 0,
    capacityBytes: space.total,
    availableBytes: space.available,
    usedBytes: space.used,
    inodes: nodes.total,
    inodesFree: nodes.available,
    inodesUsed: nodes.used,
    ...(hasHealth && { condition: condition ?? { isAbnormal: false, message: "" } }),
  };
}
