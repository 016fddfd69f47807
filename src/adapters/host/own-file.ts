import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { errnoOf } from "../../lib/errors.ts";
import { HostError, hostError } from "./host-error.ts";
import { notRegular } from "./open-inside.ts";

/** More than any small file of the agent or of the kernel has, in bytes. */
const MOST_BYTES = 1 << 20;

/**
 * Returns the text of a small file of the agent's own or of the kernel; undefined if it does not exist. Whatever somebody
 * or a broken disk put in its place is refused: a FIFO would hold a thread for ever, a link to a device fill the memory.
 */
export async function readOwnFile(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      const found = await file.stat();
      if (!found.isFile()) throw notRegular(path);
      if (found.size > MOST_BYTES)
        throw new HostError("InvalidArgument", `read ${path}: longer than ${MOST_BYTES} bytes`);
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT") return undefined;
    // A link; a socket, or a device without a driver.
    if (code === "ELOOP" || code === "ENXIO") throw notRegular(path);
    throw hostError(`read ${path}`, error);
  }
}
