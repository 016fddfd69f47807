import type { PressureStall, StallTimes } from "../../model/usage.ts";
import { readKernelFile } from "./kernel-file.ts";

/** Reads a PSI file, such as /proc/pressure/cpu; undefined if the kernel has none. */
export function readPressureStall(path: string): PressureStall | undefined {
  const text = readKernelFile(path);
  return text === undefined ? undefined : parsePressureStall(text);
}

/** Parses lines of the form `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`; a missing line counts as no stall. */
export function parsePressureStall(text: string): PressureStall | undefined {
  const some = stallTimes(text, "some");
  return some && { some, full: stallTimes(text, "full") ?? { avg10: 0, avg60: 0, avg300: 0, total: 0 } };
}

const LINE = /^(some|full) avg10=([\d.]+) avg60=([\d.]+) avg300=([\d.]+) total=(\d+)$/gm;

function stallTimes(text: string, kind: "some" | "full"): StallTimes | undefined {
  for (const [, name, avg10, avg60, avg300, total] of text.matchAll(LINE)) {
    if (name !== kind) continue;
    return { avg10: Number(avg10), avg60: Number(avg60), avg300: Number(avg300), total: Number(total) };
  }
  return undefined;
}
