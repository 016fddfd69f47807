import { closeSync, openSync, readSync } from "node:fs";

/** Files of /proc and of cgroups that are read here are smaller; what is longer is cut. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024);
/**
 * A file of many records, such as the processes of a cgroup, is read a page at a time at most, without the record that
 * does not fit: there may be more if a read brought at least this many bytes.
 */
const MAY_BE_MORE = 2048;

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
    let length = 0;
    for (let last = MAY_BE_MORE; last >= MAY_BE_MORE && length < buffer.length; length += last) {
      last = readSync(fd, buffer, length, buffer.length - length, null);
    }
    return buffer.toString("latin1", 0, length);
  } catch {
    // The cgroup or the process is gone, or the controller is off.
    return undefined;
  } finally {
    closeSync(fd);
  }
}

/** The number in a file of one number; undefined if there is none, as for `max`. */
export function numberIn(path: string, read: ReadFile = readKernelFile): number | undefined {
  const text = read(path);
  const first = text?.charCodeAt(0) ?? 0;
  return text !== undefined && first >= ZERO && first <= NINE ? Number.parseInt(text, 10) : undefined;
}

const ZERO = 48;
const NINE = 57;

/** Reads a file as `readKernelFile` does. */
export type ReadFile = (path: string) => string | undefined;

/** Reads files once each until `clear`: for several who look at the same cgroup at the same moment. */
export class SharedReads {
  private readonly texts = new Map<string, string | undefined>();

  readonly read: ReadFile = (path) => {
    const known = this.texts.get(path);
    if (known !== undefined || this.texts.has(path)) return known;
    const text = readKernelFile(path);
    this.texts.set(path, text);
    return text;
  };

  clear(): void {
    this.texts.clear();
  }
}

/** The number after a name in a file of lines `name number`; 0 if the name is missing. */
export function fieldIn(text: string, name: string): number {
  const at = text.startsWith(`${name} `) ? 0 : text.indexOf(`\n${name} `) + 1;
  if (at === 0 && !text.startsWith(`${name} `)) return 0;
  return Number.parseInt(text.slice(at + name.length + 1, at + name.length + 24), 10) || 0;
}

/** The number after a label at the beginning of a line, as in `mnt_id:\t29`; undefined if there is none. */
export function fieldAfter(text: string, label: string): number | undefined {
  const line = text.split("\n").find((one) => one.startsWith(label));
  const value = Number(line?.slice(label.length).trim() || Number.NaN);
  return Number.isInteger(value) ? value : undefined;
}
