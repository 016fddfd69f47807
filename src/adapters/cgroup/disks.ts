import type { BlockDeviceUsage } from "../../model/usage.ts";
import { type ReadFile, readKernelFile } from "../host/kernel-file.ts";

type Counts = Record<string, number>;

/** Files of version 1 with bytes and operations; which of them count depends on the scheduler of the disks. */
const FILES_V1 = [
  ["blkio.bfq.io_service_bytes_recursive", "blkio.bfq.io_serviced_recursive"],
  ["blkio.io_service_bytes_recursive", "blkio.io_serviced_recursive"],
  ["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"],
  ["blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"],
] as const;

/** Reads input and output of cgroups of version 1, by device. */
export class DiskReaderV1 {
  /** Files that the kernel does not have: a cgroup that has another of them lacked them. */
  private readonly missing = new Set<string>();

  constructor(private readonly file: ReadFile) {}

  read(directory: string | undefined): readonly BlockDeviceUsage[] {
    if (directory === undefined) return [];
    const absent: string[] = [];
    for (const [bytesFile, operationsFile] of FILES_V1) {
      if (this.missing.has(bytesFile)) continue;
      const text = this.file(`${directory}/${bytesFile}`);
      if (text === undefined) {
        absent.push(bytesFile);
        continue;
      }
      for (const name of absent) this.missing.add(name);
      const bytes = countsIn(text);
      if (bytes.size === 0) continue;
      const operations = countsIn(this.file(`${directory}/${operationsFile}`) ?? "");
      return [...bytes].map(([device, counts]) => {
        return { ...deviceOf(device), bytes: counts, operations: operations.get(device) ?? {} };
      });
    }
    return [];
  }
}

/** Parses lines of the form `8:0 Read 4096`. */
function countsIn(text: string): Map<string, Counts> {
  const found = new Map<string, Counts>();
  for (const [, device = "", operation = "", count] of text.matchAll(/^(\d+:\d+) (\w+) (\d+)$/gm)) {
    const counts = found.get(device) ?? {};
    counts[operation] = Number(count);
    found.set(device, counts);
  }
  return found;
}

/** Input and output of a cgroup of version 2, by device. */
export function readDisksV2(directory: string | undefined, read: ReadFile): readonly BlockDeviceUsage[] {
  const text = directory && read(`${directory}/io.stat`);
  if (text === undefined) return [];
  return [...text.matchAll(/^(\d+:\d+) (.*)$/gm)].map(([, device = "", rest = ""]) => {
    const field = (name: string): number => Number(new RegExp(`(?:^| )${name}=(\\d+)`).exec(rest)?.[1] ?? 0);
    const cost = {
      usage: field("cost\\.usage"),
      wait: field("cost\\.wait"),
      indebt: field("cost\\.indebt"),
      indelay: field("cost\\.indelay"),
    };
    return {
      ...deviceOf(device),
      bytes: { Read: field("rbytes"), Write: field("wbytes") },
      operations: { Read: field("rios"), Write: field("wios") },
      ...(rest.includes("cost.usage=") && { cost }),
    };
  });
}

/** Names of devices by their numbers: they do not change while a device is used. */
const names = new Map<string, string>();
const MOST_NAMES = 1024;

function deviceOf(numbers: string): Pick<BlockDeviceUsage, "device" | "major" | "minor"> {
  const [major, minor] = numbers.split(":");
  return { device: nameOf(numbers), major: Number(major), minor: Number(minor) };
}

function nameOf(numbers: string): string {
  const known = names.get(numbers);
  if (known !== undefined) return known;
  const found = /^DEVNAME=(.+)$/m.exec(readKernelFile(`/sys/dev/block/${numbers}/uevent`) ?? "")?.[1];
  const name = found === undefined ? "" : `/dev/${found}`;
  if (names.size >= MOST_NAMES) names.clear();
  names.set(numbers, name);
  return name;
}
