import { closeSync, openSync, readSync } from "node:fs";

/** Files of /proc and of cgroups that are read here are smaller; what is longer is cut. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * The text of a small file of /proc, /sys or a cgroup; undefined if it cannot be read. Synchronous: the kernel makes
 * such a file from its memory, and a thread for each would cost ten times as much. Never a user's path.
 */
export function readKernelFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    return buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
  } catch {
    // The cgroup or the process is gone, or the controller is off.
    return undefined;
  } finally {
    closeSync(fd);
  }
}

/** The number in a file of one number; undefined if there is none, as for `max`. */
export function numberIn(path: string): number | undefined {
  const text = readKernelFile(path);
  return text === undefined || !/^\d/.test(text) ? undefined : Number.parseInt(text, 10);
}

/** The number after a name in a file of lines `name number`; 0 if the name is missing. */
export function fieldIn(text: string, name: string): number {
  const at = text.startsWith(`${name} `) ? 0 : text.indexOf(`\n${name} `) + 1;
  if (at === 0 && !text.startsWith(`${name} `)) return 0;
  return Number.parseInt(text.slice(at + name.length + 1, at + name.length + 24), 10) || 0;
}
