import { existsSync, mkdirSync, statfsSync } from "node:fs";
import { status } from "@grpc/grpc-js";
import type * as csi from "../../../src/adapters/plugins/generated/csi.ts";
import { command, formatOf, type LoopVolumes, makeFile, mountedAt, Refusal, removeTarget } from "./volumes.ts";

const MKFS: Readonly<Record<string, readonly string[]>> = {
  ext4: ["mkfs.ext4", "-q", "-F", "-m0"],
  xfs: ["mkfs.xfs", "-q", "-f"],
};

/** The node service of the driver: every call may be repeated. */
export class LoopNode {
  constructor(private readonly volumes: LoopVolumes) {}

  stage(request: csi.NodeStageVolumeRequest): object {
    const { volumeId, stagingTargetPath: path, volumeCapability } = request;
    required({ volumeId, "staging target path": path, "volume capability": volumeCapability });
    this.volumes.find(volumeId);
    if (volumeCapability?.block !== undefined) {
      this.volumes.attach(volumeId);
      return {};
    }
    const { fsType, mountFlags } = volumeCapability?.mount ?? { fsType: "", mountFlags: [] };
    const type = fsType === "" ? "ext4" : fsType;
    if (mountedAt(path) !== undefined) return {};
    const device = this.volumes.attach(volumeId);
    const found = formatOf(device);
    if (found === "") this.format(device, type);
    else if (found !== type) throw new Refusal(status.FAILED_PRECONDITION, `it has ${found}, not ${type}`);
    mkdirSync(path, { recursive: true });
    // Two volumes that were copied from one have the same id.
    const flags = [...mountFlags, ...(type === "xfs" ? ["nouuid"] : [])];
    command("mount", ["-t", type, ...(flags.length > 0 ? ["-o", flags.join(",")] : []), device, path]);
    return {};
  }

  unstage({ volumeId, stagingTargetPath: path }: csi.NodeUnstageVolumeRequest): object {
    required({ volumeId, "staging target path": path });
    this.volumes.find(volumeId);
    while (mountedAt(path) !== undefined) command("umount", [path]);
    this.volumes.detach(volumeId);
    return {};
  }

  publish(request: csi.NodePublishVolumeRequest): object {
    const { volumeId, targetPath: target, stagingTargetPath: stage, volumeCapability, readonly } = request;
    required({ volumeId, "target path": target, "volume capability": volumeCapability });
    this.volumes.find(volumeId);
    const there = mountedAt(target);
    if (there !== undefined) {
      if (there.isReadonly === readonly || volumeCapability?.block !== undefined) return {};
      throw new Refusal(status.ALREADY_EXISTS, `${target} is published otherwise`);
    }
    if (volumeCapability?.block !== undefined) {
      const device = this.volumes.device(volumeId);
      if (device === undefined) throw new Refusal(status.FAILED_PRECONDITION, `volume ${volumeId} is not staged`);
      makeFile(target);
      command("mount", ["--bind", device, target]);
      return {};
    }
    if (stage === "" || mountedAt(stage) === undefined) {
      throw new Refusal(status.FAILED_PRECONDITION, `volume ${volumeId} is not staged at ${stage}`);
    }
    mkdirSync(target, { recursive: true });
    command("mount", ["--bind", stage, target]);
    if (readonly) command("mount", ["-o", "remount,bind,ro", target]);
    return {};
  }

  unpublish({ volumeId, targetPath }: csi.NodeUnpublishVolumeRequest): object {
    required({ volumeId, "target path": targetPath });
    this.volumes.find(volumeId);
    removeTarget(targetPath);
    return {};
  }

  expand({ volumeId, volumePath, volumeCapability, capacityRange }: csi.NodeExpandVolumeRequest): object {
    required({ volumeId, "volume path": volumePath });
    const volume = this.volumes.find(volumeId);
    const bytes = Number(capacityRange?.requiredBytes ?? 0n);
    if (bytes > volume.bytes) throw new Refusal(status.OUT_OF_RANGE, `the volume has only ${volume.bytes} bytes`);
    if (mountedAt(volumePath) === undefined) throw new Refusal(status.NOT_FOUND, `nothing is at ${volumePath}`);
    const device = this.volumes.grow(volumeId);
    if (volumeCapability?.block === undefined) this.growFilesystem(device, volumePath);
    return { capacityBytes: BigInt(volume.bytes) };
  }

  stats({ volumeId, volumePath }: csi.NodeGetVolumeStatsRequest): object {
    required({ volumeId, "volume path": volumePath });
    const { bytes } = this.volumes.find(volumeId);
    const mounted = mountedAt(volumePath);
    if (!existsSync(volumePath) || mounted === undefined) {
      throw new Refusal(status.NOT_FOUND, `nothing is at ${volumePath}`);
    }
    if (mounted.source === "devtmpfs" || mounted.source === "udev") {
      return { usage: [{ total: BigInt(bytes), available: 0n, used: 0n, unit: 1 }] };
    }
    const { bsize, blocks, bavail, bfree, files, ffree } = statfsSync(volumePath);
    return {
      usage: [
        {
          total: BigInt(blocks * bsize),
          available: BigInt(bavail * bsize),
          used: BigInt((blocks - bfree) * bsize),
          unit: 1,
        },
        { total: BigInt(files), available: BigInt(ffree), used: BigInt(files - ffree), unit: 2 },
      ],
    };
  }

  private format(device: string, type: string): void {
    const [file, ...args] = MKFS[type] ?? [];
    if (file === undefined) throw new Refusal(status.INVALID_ARGUMENT, `"${type}" is no filesystem of this driver`);
    command(file, [...args, device]);
  }

  private growFilesystem(device: string, path: string): void {
    const format = formatOf(device);
    if (format === "xfs") command("xfs_growfs", ["-d", path]);
    // Not all callers say that a volume is a device: then there is nothing on it to grow.
    else if (format !== "") command("resize2fs", [device]);
  }
}

/** Refuses a call that leaves one of these out. */
export function required(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null || value === "") throw new Refusal(status.INVALID_ARGUMENT, `no ${name}`);
  }
}
