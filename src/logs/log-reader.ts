import { hostLogFiles } from "../adapters/host/log-files.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { type ReadLogRequest, readLog } from "./read-log.ts";

/** Reads logs of containers from the files of the host. */
export function logReader(clock: Clock): {
  read(request: ReadLogRequest, options: Abortable): AsyncIterable<Uint8Array>;
} {
  return { read: (request, options) => readLog({ files: hostLogFiles, clock }, request, options) };
}
