import { mkdir, readdir } from "node:fs/promises";
import { dirname, relative, resolve } from "node:path";
import { readIfExists, syncDirectory, writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";

/** The files of the dynamic configuration (`StoreFiles` of src/config). Only their owner reads them: they may hold secrets. */
export const configStoreFiles = {
  read: readIfExists,

  async write(path: string, content: string): Promise<void> {
    await makeDirectories(dirname(resolve(path)));
    await writeAtomic(path, content);
  },

  async list(path: string): Promise<readonly string[]> {
    try {
      return await readdir(path);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    }
  },
};

/** A new directory survives a power cut only when the one above it was synced. */
async function makeDirectories(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o755 });
  if (first === undefined) return;
  await syncDirectory(dirname(first));
  let made = first;
  for (const part of relative(first, path).split("/").filter(Boolean)) {
    await syncDirectory(made);
    made = `${made}/${part}`;
  }
}
