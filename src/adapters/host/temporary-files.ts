import { readdirSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Removes what `writeAtomic` left beside a file when an earlier agent was killed in the middle of a write: each has a name
 * of its own, and nobody would ever remove it. Those of this process may be under way. Synchronous: for the start of the
 * agent. Never throws.
 */
export function removeTemporaryFiles(path: string): void {
  const directory = dirname(path);
  const prefix = `.${basename(path)}.`;
  const isOther = (name: string): boolean => {
    const [, pid] = /^(\d+)\.\d+\.tmp$/.exec(name.startsWith(prefix) ? name.slice(prefix.length) : "") ?? [];
    return pid !== undefined && Number(pid) !== process.pid;
  };
  try {
    for (const name of readdirSync(directory).filter(isOther)) unlinkSync(join(directory, name));
  } catch {
    // A directory that is missing or broken is reported when its file is read.
  }
}
