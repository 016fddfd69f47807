import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { ownValue } from "../../lib/own-value.ts";
import { exec } from "./exec.ts";
import { HostError } from "./host-error.ts";
import type { MountCommands } from "./mount-commands.ts";

/** A block device with a filesystem on it, and where that is wanted. */
export interface DeviceMount {
  readonly device: string;
  readonly target: string;
  /** The filesystem that is expected, or created; defaults to ext4. */
  readonly fsType?: string;
  /** Make a filesystem on a device that holds nothing, and repair one that needs it: not for a read-only mount. */
  readonly mayFormat: boolean;
  /** Mount options; `defaults` is added, as in Kubernetes. */
  readonly options?: readonly string[];
}

const PROBE_MS = 30_000;
/** A filesystem on a large, slow disk takes minutes. */
const FORMAT_MS = 1_800_000;
/** What must be zero of a device on which nothing was recognised, or it is somebody's data. */
const BLANK_BYTES = 1 << 20;
/** Exit codes of fsck(8): a sum of bits, of which this one says that errors are left. */
const ERRORS_LEFT = 4;

const FORMAT_FLAGS: Readonly<Record<string, readonly string[]>> = {
  ext3: ["-F", "-m0"],
  ext4: ["-F", "-m0"],
  xfs: ["-f"],
};

/**
 * Mounts block devices by commands with time limits: a device may hang. One that holds nothing gets a filesystem first.
 * It holds nothing only if no filesystem and no partitions are found on it and it begins with zeros: Kubernetes asks
 * for the first alone, and overwrites data that it does not know.
 */
export class DeviceMounts {
  /** One at a time for a device: two must not both find it blank. */
  private readonly turns = new Map<string, Promise<unknown>>();

  constructor(
    private readonly clock: Clock,
    private readonly commands: Pick<MountCommands, "mount">,
  ) {}

  async mount(request: DeviceMount, options: Abortable): Promise<void> {
    const { device, fsType = "" } = request;
    if (!/^[a-z0-9]*$/.test(fsType)) throw new HostError("InvalidArgument", `"${fsType}" is not a filesystem type`);
    const before = this.turns.get(device);
    const done = Promise.resolve(before).then(() => this.mountNow(request, options));
    const turn = done.catch(() => undefined);
    this.turns.set(device, turn);
    try {
      await done;
    } finally {
      if (this.turns.get(device) === turn) this.turns.delete(device);
    }
  }

  private async mountNow(request: DeviceMount, options: Abortable): Promise<void> {
    const { device, target, fsType = "", mayFormat } = request;
    const found = await this.probe(device, options);
    if (found !== undefined && fsType !== "" && found !== fsType) {
      throw new HostError("InvalidArgument", `${device} has filesystem ${found}, not ${fsType}`);
    }
    const type = found ?? (fsType || "ext4");
    if (found === undefined) {
      if (!mayFormat)
        throw new HostError(
          "InvalidArgument",
          `${device} has no filesystem and must not be formatted: it is read-only`,
        );
      await this.format(device, type, options);
    } else if (mayFormat) await this.repair(device, options);
    const mountOptions = [...(request.options ?? []), "defaults"];
    await this.commands.mount({ source: device, target, type, options: mountOptions }, options);
  }

  /** Checks the filesystem and repairs what is safe to repair; where there is no fsck it is mounted as it is. */
  private async repair(device: string, options: Abortable): Promise<void> {
    try {
      const { code, stdout, stderr } = await exec(this.clock, ["fsck", "-a", device], {
        ...options,
        timeoutMs: FORMAT_MS,
      });
      if (code !== ERRORS_LEFT) return;
      const words = `'fsck' found errors on device ${device} but could not correct them: ${stdout}${stderr}`;
      throw new HostError("Unknown", words.trim());
    } catch (error) {
      if (!(error instanceof HostError && error.code === "NotFound")) throw error;
    }
  }

  /** The filesystem on the device; undefined when it is blank. */
  private async probe(device: string, options: Abortable): Promise<string | undefined> {
    const command = ["blkid", "-p", "-o", "export", "--", device] as const;
    const { code, stdout, stderr } = await exec(this.clock, command, { ...options, timeoutMs: PROBE_MS });
    const type = /^TYPE=(.+)$/m.exec(stdout)?.[1];
    if (type !== undefined) return type;
    const table = /^PTTYPE=(.+)$/m.exec(stdout)?.[1];
    if (table !== undefined)
      throw new HostError("InvalidArgument", `${device} has a partition table (${table}), not a filesystem`);
    // 2: nothing was found, or the device cannot be read, which the next read reports.
    if (code !== 2) throw new HostError("Unknown", `probe ${device}: ${stderr.trim() || `blkid ${code}`}`);
    return undefined;
  }

  private async format(device: string, type: string, options: Abortable): Promise<void> {
    const compare = ["cmp", "--silent", `--bytes=${BLANK_BYTES}`, "--", device, "/dev/zero"] as const;
    const { code, stderr } = await exec(this.clock, compare, { ...options, timeoutMs: PROBE_MS });
    if (code !== 0 && code !== 1) throw new HostError("Unknown", `read ${device}: ${stderr.trim()}`);
    if (code === 1) {
      const words = `${device} has no known filesystem and is not blank: refusing to format it`;
      throw new HostError("InvalidArgument", words);
    }
    // Not to be interrupted: half a filesystem is neither blank nor good.
    const command = [`mkfs.${type}`, ...(ownValue(FORMAT_FLAGS, type) ?? []), device] as const;
    const made = await exec(this.clock, command, { timeoutMs: FORMAT_MS });
    if (made.code === 0) return;
    throw new HostError("Unknown", `${command[0]} exited with code ${made.code}: ${made.stderr.trim()}`);
  }
}
