import type { DiskActivity, FilesystemSpace, MountedFilesystem } from "../../model/usage.ts";
import { readKernelFile } from "./kernel-file.ts";
import { type MountEntry, readMountTable } from "./mount-table.ts";

/** Types whose space is shown, as in cAdvisor, without those of networks: they can hang. */
const SHOWN = /^(ext[234]|xfs|btrfs|zfs|f2fs|tmpfs)$/;
/** What belongs to containers and to the volumes of pods is no filesystem of the node. */
const HIDDEN = /^\/(run|var\/lib)\/(containerd|docker|crio|containers|kubelet|netns)(\/|$)|\/sandboxes\/\w+\/shm$/;
/** Filesystems that are shown at most. */
const MOST = 64;

/** The filesystems of the node with their space and the activity of their devices; one that hangs is left out. */
export async function readMountedFilesystems(
  space: (path: string) => Promise<FilesystemSpace | undefined>,
  rootDir: string,
): Promise<readonly MountedFilesystem[]> {
  const disks = parseDiskStats(readKernelFile("/proc/diskstats") ?? "");
  const found = await Promise.all(
    shownMounts(readMountTable(), rootDir).map(async ({ device, type, mountpoint }) => {
      const known = await space(mountpoint);
      if (known === undefined) return [];
      const activity = disks.get(numbersOf(known.device));
      return [{ device, type, mountpoint, space: known, ...(activity && { activity }) }];
    }),
  );
  return found.flat();
}

/** Each filesystem once; one in memory goes by its mount point. Pure. */
export function shownMounts(
  table: readonly MountEntry[],
  rootDir: string,
): readonly Pick<MountedFilesystem, "device" | "type" | "mountpoint">[] {
  const found = new Map<string, Pick<MountedFilesystem, "device" | "type" | "mountpoint">>();
  for (const { type, target, source } of table) {
    if (!SHOWN.test(type) || HIDDEN.test(target) || target.startsWith(`${rootDir}/`)) continue;
    const device = type === "tmpfs" ? target : source;
    if (!found.has(device) && found.size < MOST) found.set(device, { device, type, mountpoint: target });
  }
  return [...found.values()];
}

/** Parses /proc/diskstats, by `major:minor`. */
export function parseDiskStats(text: string): ReadonlyMap<string, DiskActivity> {
  const found = new Map<string, DiskActivity>();
  for (const line of text.split("\n")) {
    const [major, minor, , ...rest] = line.trim().split(/\s+/);
    const [reads = 0, readsMerged = 0, sectorsRead = 0, readMs = 0, writes = 0, writesMerged = 0, ...more] =
      rest.map(Number);
    const [sectorsWritten = 0, writeMs = 0, inProgress = 0, ioMs = 0, weightedMs = 0] = more;
    if (major === undefined || minor === undefined || more.length < 5) continue;
    const read = { reads, readsMerged, sectorsRead, readMs };
    const written = { writes, writesMerged, sectorsWritten, writeMs };
    found.set(`${major}:${minor}`, { ...read, ...written, inProgress, ioMs, weightedMs });
  }
  return found;
}

/** `major:minor` of the kernel's device number. */
export function numbersOf(device: number): string {
  const number = BigInt(device);
  const major = (number >> 8n) & 0xfffn;
  const minor = (number & 0xffn) | ((number >> 12n) & 0xfff00n);
  return `${major}:${minor}`;
}
