import { constants } from "node:fs";
import { mkdir, open, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { removeIfExists, writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";

/** Bytes of the largest record that is read: far more than the agent writes. */
const MOST_BYTES = 4 * 1024 * 1024;

/** The host's files for the records of pulled images. */
export const pullRecordFiles = {
  /** Returns the names in a directory, none if it does not exist, and removes temporary files of killed kubelets. */
  async names(directory: string): Promise<readonly string[]> {
    let names: readonly string[];
    try {
      names = await readdir(directory);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    }
    const isTemporary = (name: string): boolean => /^\.?sha256-.*\.tmp$/.test(name);
    for (const name of names.filter(isTemporary)) await removeIfExists(join(directory, name));
    return names.filter((name) => !isTemporary(name));
  },

  /** Returns the content, undefined if there is no such file. */
  async read(path: string): Promise<string | undefined> {
    try {
      // Opening a pipe would wait for its writer.
      const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        const stats = await file.stat();
        const { size } = stats;
        if (!stats.isFile()) throw new Error(`read ${path}: is not a regular file`);
        if (size > MOST_BYTES) throw new Error(`read ${path}: has ${size} bytes, more than ${MOST_BYTES}`);
        return await file.readFile("utf8");
      } finally {
        await file.close();
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  },

  /** Replaces the file as a whole, and survives a power cut. */
  async write(path: string, text: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeAtomic(path, text);
  },

  remove(path: string): Promise<void> {
    return removeIfExists(path);
  },
};
