import { basename, dirname } from "node:path";
import type { VolumeHost } from "./kind.ts";

/**
 * A file that is there from before a volume is set up until all its files have the group of its pod: an agent that was
 * killed in between leaves a volume that is mounted and not ready. It need not outlive the machine, nor does the mount.
 */
export class GroupMark {
  constructor(
    private readonly host: Pick<VolumeHost, "makeDir" | "makeFile" | "removeFile" | "list">,
    private readonly path: string,
  ) {}

  async set(): Promise<void> {
    await this.host.makeDir(dirname(this.path), 0o750);
    await this.host.makeFile(this.path, 0o600);
  }

  remove(): Promise<void> {
    return this.host.removeFile(this.path);
  }

  async isSet(): Promise<boolean> {
    return (await this.host.list(dirname(this.path))).includes(basename(this.path));
  }
}
