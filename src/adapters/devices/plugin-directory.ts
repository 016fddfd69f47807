import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
} from "node:fs";
import { join } from "node:path";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";
import { removeTemporaryFiles } from "../host/temporary-files.ts";

/** The socket that plugins register on. */
export const REGISTRATION_SOCKET = "kubelet.sock";
/** The name of Kubernetes' own file: either agent reads what the other wrote. */
const CHECKPOINT = "kubelet_internal_checkpoint";
/** Bytes of the largest checkpoint that is read: far more than thousands of devices take. */
const MOST_BYTES = 64 * 1024 * 1024;

/** The directory of device plugins, `ROOT/device-plugins`: their sockets, and the checkpoint of what is allocated. */
export class PluginDirectory {
  constructor(readonly path: string) {}

  /**
   * The checkpoint; undefined if there is none, empty if it is not a file of sensible size. Throws if it cannot be read.
   * Synchronous: it is read once, at start. Plugins may write to the directory: no pipe is waited for, no link followed.
   */
  readCheckpoint(): string | undefined {
    removeTemporaryFiles(this.checkpoint);
    let fd: number;
    try {
      fd = openSync(this.checkpoint, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      if (errnoOf(error) === "ELOOP" || errnoOf(error) === "ENXIO") return "";
      throw error;
    }
    try {
      const stats = fstatSync(fd);
      return stats.isFile() && stats.size <= MOST_BYTES ? readFileSync(fd, "utf8") : "";
    } finally {
      closeSync(fd);
    }
  }

  /** Replaces the checkpoint as a whole. Rejects if it is so large that it would not be read again. */
  async writeCheckpoint(text: string): Promise<void> {
    const bytes = Buffer.byteLength(text);
    if (bytes > MOST_BYTES) throw new Error(`device checkpoint has ${bytes} bytes, more than ${MOST_BYTES}`);
    mkdirSync(this.path, { recursive: true, mode: 0o750 });
    await writeAtomic(this.checkpoint, text);
  }

  /** Moves a damaged checkpoint aside; returns where to. */
  setAside(): string {
    const aside = `${this.checkpoint}.corrupt`;
    renameSync(this.checkpoint, aside);
    return aside;
  }

  /**
   * Makes the directory, and removes the sockets in it: plugins of an earlier run register again when they see the new
   * one. Files that are not sockets stay. Nothing else is put there: plugins do not register where they find a file
   * `DEPRECATION`.
   */
  clean(): void {
    mkdirSync(this.path, { recursive: true, mode: 0o750 });
    chmodSync(this.path, 0o750);
    for (const name of readdirSync(this.path)) {
      const path = join(this.path, name);
      if (isSocket(path)) unlinkSync(path);
    }
  }

  private get checkpoint(): string {
    return join(this.path, CHECKPOINT);
  }
}

function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch {
    return false; // gone meanwhile
  }
}
