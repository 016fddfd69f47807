import { rename } from "node:fs/promises";
import { readIfExists, writeAtomic } from "../../lib/atomic-file.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";

/** Where a damaged state file is moved. */
const ASIDE = ".corrupt";

/** A small JSON file that outlives the agent. One that is damaged is moved aside with a warning, and counts as missing. */
export class StateFile<T> {
  constructor(
    private readonly deps: { readonly path: string; readonly log: Pick<Logger, "warn"> },
    /** Returns undefined for a document of another shape. */
    private readonly decode: (document: unknown) => T | undefined,
  ) {}

  /** Undefined if there is none, or none that can be read. */
  async load(): Promise<T | undefined> {
    const { path, log } = this.deps;
    try {
      const text = await readIfExists(path);
      if (text === undefined) return undefined;
      const found = this.decode(parsed(text));
      if (found !== undefined) return found;
      await rename(path, `${path}${ASIDE}`);
      log.warn("Moved damaged state file aside", { path: `${path}${ASIDE}` });
    } catch (error) {
      log.warn("Failed to read state file", { path, error: messageOf(error) });
    }
    return undefined;
  }

  /** Replaces the file as a whole. */
  save(state: T): Promise<void> {
    return writeAtomic(this.deps.path, `${JSON.stringify(state)}\n`, { mode: 0o644 });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
