import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { ownValue } from "../../lib/own-value.ts";
import { exec } from "./exec.ts";
import { HostError } from "./host-error.ts";

/** A block device with a filesystem on it, and where that is wanted. */
export interface DeviceMount {
  readonly device: string;
  readonly target: string;
  /** The filesystem that is expected, or created; defaults to ext4. */
  readonly fsType?: string;
  /** Make a filesystem on a device that holds nothing. */
  readonly mayFormat: boolean;
}

const PROBE_MS = 30_000;
const MOUNT_MS = 60_000;
/** A filesystem on a large, slow disk takes minutes. */
const FORMAT_MS = 1_800_000;
/** What must be zero of a device on which nothing was recognised, or it is somebody's data. */
const BLANK_BYTES = 1 << 20;

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

  constructor(private readonly clock: Clock) {}

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

  private async mountNow({ device, target, fsType = "", mayFormat }: DeviceMount, options: Abortable): Promise<void> {
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
    }
    await this.must(["mount", "-t", type, "--", device, target], { ...options, timeoutMs: MOUNT_MS });
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
    await this.must([`mkfs.${type}`, ...(ownValue(FORMAT_FLAGS, type) ?? []), device], { timeoutMs: FORMAT_MS });
  }

  private async must(
    command: readonly [string, ...string[]],
    options: Partial<Abortable> & { timeoutMs: number },
  ): Promise<void> {
    const { code, stderr } = await exec(this.clock, command, options);
    if (code === 0) return;
    throw new HostError("Unknown", `${command[0]} exited with code ${code}: ${stderr.trim()}`);
  }
}
