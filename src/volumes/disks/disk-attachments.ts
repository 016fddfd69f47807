import type { Abortable } from "../../lib/abort.ts";
import type { Live } from "../../lib/live.ts";
import { VolumesInUse, type VolumesInUseDeps, type VolumeUse } from "../volumes-in-use.ts";

export interface DiskAttachmentDeps extends VolumesInUseDeps {
  /** True if a controller of the cluster attaches volumes; else the agent does what there is to do itself. */
  isManaged(): boolean;
}

/**
 * Disks that the attach controller knows. It keeps a disk from being attached to two nodes, and detaches only what the
 * node does not report as in use: so nothing is mounted before the API server has it both as attached and as in use.
 */
export class DiskAttachments {
  private readonly used: VolumesInUse;

  constructor(private readonly deps: DiskAttachmentDeps) {
    this.used = new VolumesInUse(deps);
  }

  get isManaged(): boolean {
    return this.deps.isManaged();
  }

  /** The names for `volumesInUse` of the node's status; undefined before `restore`. */
  get inUse(): Live<readonly string[] | undefined> {
    return this.used.live;
  }

  /** Takes over the disks that an earlier agent left staged. */
  restore(uses: readonly VolumeUse[]): void {
    this.used.restore(uses);
  }

  /** Resolves to the path that the attach controller has for the device, if any, once the disk may be mounted here. */
  async wait(use: VolumeUse, options: Abortable): Promise<string> {
    if (!this.deps.isManaged()) return "";
    await this.used.use(use, options);
    const { devicePaths } = await this.used.attached(use.name, options);
    return devicePaths?.[use.name] ?? "";
  }

  /** The disk is no longer mounted there. */
  remove(use: VolumeUse): void {
    this.used.remove(use);
  }
}
