import { mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { FdWriter, LineSink } from "../../lib/output.ts";

/** A log larger than this is put aside when the agent starts; one older one is kept. */
const ROTATE_BYTES = 10 * 1024 * 1024;

/** Opens the agent's log file for appending. A full disk loses lines, never the agent. */
export function openLogFile(path: string, clock: Clock): LineSink {
  mkdirSync(dirname(path), { recursive: true });
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > ROTATE_BYTES) renameSync(path, `${path}.1`);
  return new LineSink({ writer: new FdWriter(openSync(path, "a", 0o640), clock, true), clock });
}
