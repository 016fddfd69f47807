import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { ConfigurationError } from "../configuration-error.ts";
import type { ConfigDocument } from "../document.ts";
import { type ConfigSource, sourceId } from "./source.ts";
import type { DynamicStore, Pointer } from "./store.ts";

/** So many starts that did not end in good order are taken for the configuration's fault; fewer may be a power cut. */
export const MOST_STARTS = 3;

export interface ChooserDeps {
  readonly store: DynamicStore;
  /** Parses a configuration; `file` is its name in messages. */
  parse(text: string, file: string, abortable: Abortable): Promise<ConfigDocument>;
  /** What is wrong with it in the place of the file; a line each. */
  judge(document: ConfigDocument): readonly string[];
}

/** The configuration that the agent runs with, and what to report about it. */
export interface Chosen {
  readonly state: "local" | "trial" | "good" | "rolled back";
  /** Undefined is the local configuration. */
  readonly active: ConfigSource | undefined;
  readonly document: ConfigDocument | undefined;
  /** Why the assigned one is not the active one. */
  readonly error?: string;
}

/** Decides by what is stored which configuration an agent starts with, and which one it falls back on. */
export class ConfigChooser {
  constructor(private readonly deps: ChooserDeps) {}

  /** At a start: the assigned one if it is whole, valid and has not failed its trial. Counts the start. */
  async choose(assigned: Pointer, good: Pointer, abortable: Abortable): Promise<Chosen> {
    if (assigned.state === "none") return { state: "local", active: undefined, document: undefined };
    if (assigned.state === "damaged") return this.fallBack(assigned.why, good, abortable);
    const { source } = assigned;
    const isGood = good.state === "set" && sourceId(good.source) === sourceId(source);
    try {
      if (!isGood) await this.countStart(source);
      return { state: isGood ? "good" : "trial", active: source, document: await this.kept(source, abortable) };
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return this.fallBack(error.message, isGood ? { state: "none" } : good, abortable);
    }
  }

  /** The last known good one, or the local one where there is none or it is not good any more. */
  async fallBack(why: string, good: Pointer, abortable: Abortable): Promise<Chosen> {
    const local = { state: "rolled back", active: undefined, document: undefined } as const;
    if (good.state === "none") return { ...local, error: why };
    if (good.state === "damaged") return { ...local, error: `${why}; nor is the last known good one: ${good.why}` };
    const { source } = good;
    try {
      return { state: "rolled back", active: source, document: await this.kept(source, abortable), error: why };
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return { ...local, error: `${why}; nor is the last known good one: ${error.message}` };
    }
  }

  /** What a pointer leads to; throws a `ConfigurationError` when it is not whole or not valid. */
  async kept(source: ConfigSource, abortable: Abortable): Promise<ConfigDocument> {
    const { store } = this.deps;
    return this.load(await store.checkpoint(source), store.checkpointPath(source), abortable);
  }

  /** Parses and judges; throws `Invalid` with all that is wrong. */
  async load(text: string, file: string, abortable: Abortable): Promise<ConfigDocument> {
    let document: ConfigDocument;
    try {
      document = await this.deps.parse(text, file, abortable);
    } catch (error) {
      abortable.signal.throwIfAborted();
      throw new ConfigurationError("Invalid", `${file}: ${messageOf(error)}`, { cause: error });
    }
    const problems = this.deps.judge(document);
    if (problems.length > 0) throw new ConfigurationError("Invalid", problems.join("; "));
    return document;
  }

  /** Written down before anything runs under it: whatever happens next, it has happened under this one. */
  private async countStart(source: ConfigSource): Promise<void> {
    const { store } = this.deps;
    const trial = await store.trial(source);
    if (trial.failed !== undefined) throw new ConfigurationError("Invalid", trial.failed);
    if (trial.starts >= MOST_STARTS) {
      const failed = `the agent crashed ${trial.starts} times under it`;
      await stored(() => store.setTrial({ ...trial, failed }));
      throw new ConfigurationError("Invalid", failed);
    }
    await stored(() => store.setTrial({ ...trial, starts: trial.starts + 1 }));
  }
}

/** Writes to the store; what fails there is `NotStored`. */
export async function stored<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new ConfigurationError("NotStored", `the configuration could not be written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
