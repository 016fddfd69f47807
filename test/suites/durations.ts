import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import type { Durations } from "./lanes.ts";

/** Kept for this machine, outside the checkout: another machine is slow elsewhere. */
const FILE = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts", "suite-seconds.json");

/** How long each suite took here the last time; empty where nothing was recorded. */
export function readDurations(): Durations {
  try {
    return JSON.parse(readFileSync(FILE, "utf8")) as Durations; // written below
  } catch {
    return {};
  }
}

/** Adds what was measured now. A machine that cannot keep it only schedules worse. */
export function writeDurations(measured: Durations): void {
  try {
    mkdirSync(dirname(FILE), { recursive: true });
    const fresh = `${FILE}.${process.pid}`;
    writeFileSync(fresh, `${JSON.stringify({ ...readDurations(), ...measured }, undefined, 2)}\n`);
    renameSync(fresh, FILE);
  } catch {
    // The order of the next run is that of this one.
  }
}
