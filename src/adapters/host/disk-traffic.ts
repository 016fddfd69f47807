import { readKernelFile } from "./kernel-file.ts";

/** Bytes of all disks of the machine since it was started. */
export interface DiskTraffic {
  readonly readBytes: number;
  readonly writtenBytes: number;
}

const SECTOR_BYTES = 512;
/** In memory, or made of other devices of the list. */
const NO_DISK = /^(loop|ram|sr|zram|dm-|md|nbd)/;

/** Reads /proc/diskstats; undefined if the kernel has none. */
export function readDiskTraffic(): DiskTraffic | undefined {
  const text = readKernelFile("/proc/diskstats");
  return text === undefined ? undefined : sumDiskTraffic(text);
}

/** The sum of whole disks in /proc/diskstats: what a partition does is counted by its disk, too. */
export function sumDiskTraffic(text: string): DiskTraffic {
  const rows = text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , name]) => name !== undefined && !NO_DISK.test(name));
  const names = new Set(rows.map(([, , name = ""]) => name));
  let [readBytes, writtenBytes] = [0, 0];
  for (const [, , name = "", , , read = "0", , , , written = "0"] of rows) {
    if (names.has(name.replace(/p?\d+$/, "")) && /\d$/.test(name)) continue;
    readBytes += Number(read) * SECTOR_BYTES;
    writtenBytes += Number(written) * SECTOR_BYTES;
  }
  return { readBytes, writtenBytes };
}
