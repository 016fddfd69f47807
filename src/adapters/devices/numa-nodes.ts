import { readdirSync } from "node:fs";

/** Returns the NUMA nodes of the machine; 0 if the kernel shows none. */
export function numaNodes(directory = "/sys/devices/system/node"): readonly number[] {
  try {
    const found = readdirSync(directory).flatMap((name) => /^node(\d+)$/.exec(name)?.[1] ?? []);
    return found.length === 0 ? [0] : found.map(Number).sort((a, b) => a - b);
  } catch {
    return [0];
  }
}
