import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { exec } from "./exec.ts";
import { HostError } from "./host-error.ts";

/** What is at a path, links followed. */
export type PathKind = "directory" | "file" | "socket" | "charDevice" | "blockDevice" | "other";

/** A filesystem that does not answer for this long, in milliseconds, hangs. */
const ANSWER_MS = 10_000;

/**
 * What is at a path that a user chose, or undefined when nothing is. A path on a dead NFS server hangs for ever, so a
 * child process asks, and is left behind when it does not come back: rejects with a `TimeLimitError` then.
 */
export async function kindOf(clock: Clock, path: string, options: Partial<Abortable>): Promise<PathKind | undefined> {
  const command = ["stat", "--dereference", "--format=%f", "--", path] as const;
  const { code, stdout, stderr } = await exec(clock, command, { ...options, timeoutMs: ANSWER_MS });
  if (code === 0) return kindOfMode(Number.parseInt(stdout, 16));
  if (/No such file or directory|Not a directory/.test(stderr)) return undefined;
  const isDenied = /Permission denied/.test(stderr);
  throw new HostError(isDenied ? "PermissionDenied" : "Unknown", stderr.trim() || `stat exited with code ${code}`);
}

function kindOfMode(mode: number): PathKind {
  switch (mode & 0o170000) {
    case 0o040000:
      return "directory";
    case 0o100000:
      return "file";
    case 0o140000:
      return "socket";
    case 0o020000:
      return "charDevice";
    case 0o060000:
      return "blockDevice";
    default:
      return "other";
  }
}
