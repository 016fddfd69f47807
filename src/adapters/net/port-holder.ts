import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The process that listens on a TCP port. */
export interface PortHolder {
  readonly pid: number;
  readonly command: string;
}

/** `0A` is LISTEN in /proc/net/tcp. */
const LISTEN = "0A";

/**
 * The process that listens on a TCP port of this network namespace; undefined if it cannot be determined (another
 * user's process without root). Reads every process's descriptors: only for an error message.
 */
export function findPortHolder(port: number, procRoot = "/proc"): PortHolder | undefined {
  const sockets = new Set([
    ...listeningInodes(`${procRoot}/net/tcp`, port),
    ...listeningInodes(`${procRoot}/net/tcp6`, port),
  ]);
  if (sockets.size === 0) return undefined;
  for (const pid of quietly(() => readdirSync(procRoot), [])) {
    if (!/^\d+$/.test(pid)) continue;
    const holds = quietly(() => readdirSync(`${procRoot}/${pid}/fd`), []).some((fd) => {
      const link = quietly(() => readlinkSync(`${procRoot}/${pid}/fd/${fd}`), "");
      return sockets.has(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? "");
    });
    if (!holds) continue;
    const command = quietly(() => readFileSync(`${procRoot}/${pid}/comm`, "utf8").trim(), "");
    return { pid: Number(pid), command: command === "" ? "unknown" : command };
  }
  return undefined;
}

function listeningInodes(file: string, port: number): string[] {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes: string[] = [];
  for (const line of quietly(() => readFileSync(file, "utf8"), "").split("\n")) {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    if (state === LISTEN && local?.endsWith(`:${hex}`) === true && inode !== undefined) inodes.push(inode);
  }
  return inodes;
}

/** Processes may exit meanwhile. */
function quietly<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
