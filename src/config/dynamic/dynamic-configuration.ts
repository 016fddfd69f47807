import { type Abortable, AbortedError, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { ConfigError } from "../config-error.ts";
import type { ConfigDocument } from "../document.ts";
import type { ConfigEvent, ReloadOutcome } from "../live-configuration.ts";
import { type ConfigSource, sourceId, sourceName } from "./source.ts";
import type { DynamicStore, HistoryEntry, Pointer } from "./store.ts";

export interface DynamicDeps {
  readonly store: DynamicStore;
  readonly clock: Clock;
  readonly log: Logger;
  event(event: ConfigEvent): void;
  /** Parses a configuration; `file` is where it is said to be. */
  parse(text: string, file: string, abortable: Abortable): Promise<ConfigDocument>;
  /** What is wrong with it in the place of the file; a line each. */
  judge(document: ConfigDocument): readonly string[];
  /** Puts it in force as far as that goes while the agent runs; undefined is the local one. */
  use(document: ConfigDocument | undefined): Promise<ReloadOutcome>;
  /** True when nothing of the configuration waits for a restart. */
  isWhole(): boolean;
  /** What is wrong with the agent, or undefined. */
  health(abortable: Abortable): Promise<string | undefined>;
  /** How long a configuration must hold, in milliseconds. */
  trialMs(): number;
}

/** For `config view`, metrics and the cluster. */
export interface DynamicReport {
  readonly directory: string;
  readonly state: "local" | "trial" | "good" | "rolled back";
  /** Undefined is the local configuration. */
  readonly assigned: ConfigSource | undefined;
  readonly active: ConfigSource | undefined;
  readonly lastKnownGood: ConfigSource | undefined;
  /** Why the assigned one is not the active one. */
  readonly error?: string;
  /** Milliseconds until it counts as good. */
  readonly trialLeftMs?: number;
}

/** So many starts that did not end in good order are taken for the configuration's fault; fewer may be a power cut. */
export const MOST_STARTS = 3;
/** Unhealthy for this long during the trial is too long: a runtime's own restart takes less. */
export const UNHEALTHY_MS = 60_000;
const CHECK_EVERY_MS = 5000;

interface Chosen {
  readonly state: DynamicReport["state"];
  readonly active: ConfigSource | undefined;
  readonly document: ConfigDocument | undefined;
  readonly error?: string;
}

/**
 * The dynamic configuration: which one the agent runs with, and whether it is good.
 *
 *   apply ─► trial ──(holds for the trial time)──► good, the last known good
 *              └─(does not load, crashes 3 times, unhealthy for a minute)─► rolled back to the last known good, or local
 */
export class DynamicConfiguration {
  private chosen: Chosen = { state: "local", active: undefined, document: undefined };
  private assigned: ConfigSource | undefined;
  private good: ConfigSource | undefined;
  private trialSince = 0;
  private unhealthySince: number | undefined;
  private wake: () => void = () => undefined;
  private isRunning = false;
  private tail: Promise<unknown> = Promise.resolve();

  constructor(private readonly deps: DynamicDeps) {}

  /** Looks at what is stored, to change it while no agent runs. */
  async open(abortable: Abortable): Promise<void> {
    this.assigned = sourceOf(await this.deps.store.assigned(abortable));
    this.good = sourceOf(await this.deps.store.lastKnownGood(abortable));
  }

  /** Decides what to start with; undefined is the local one. Call once, before anything runs under it. */
  async start(abortable: Abortable): Promise<ConfigDocument | undefined> {
    const { store } = this.deps;
    const [assigned, good] = [await store.assigned(abortable), await store.lastKnownGood(abortable)];
    this.assigned = sourceOf(assigned);
    this.good = sourceOf(good);
    this.isRunning = true;
    this.chosen = await this.choose(assigned, good, abortable);
    this.trialSince = this.deps.clock.now().mono;
    if (this.chosen.error !== undefined) this.tellRolledBack(this.chosen);
    return this.chosen.document;
  }

  report(): DynamicReport {
    const { state, active, error } = this.chosen;
    const left = this.trialSince + this.deps.trialMs() - this.deps.clock.now().mono;
    return {
      ...{ directory: this.deps.store.directory, state, assigned: this.assigned, active, lastKnownGood: this.good },
      ...(error === undefined ? {} : { error }),
      ...(state === "trial" ? { trialLeftMs: Math.max(0, left) } : {}),
    };
  }

  history(): Promise<readonly HistoryEntry[]> {
    return this.deps.store.history();
  }

  /** Takes a configuration on trial. One that does not load or cannot be stored changes nothing. */
  apply(text: string, name: string, abortable: Abortable): Promise<ReloadOutcome> {
    return this.inTurn(async () => {
      const document = await this.load(text, name, abortable);
      const source = await this.stored(() => this.assignNew(text, name));
      await this.remember(this.assigned, "replaced", undefined);
      this.assigned = source;
      await this.remember(source, "trial", undefined);
      // From here on it is named where it is kept, not where it came from.
      const kept = { ...document, file: this.deps.store.checkpointPath(source) };
      return this.switchTo({ state: "trial", active: source, document: kept });
    });
  }

  /** Leaves the assigned configuration for the last known good one, or for the local one. */
  rollback({ toLocal }: { readonly toLocal: boolean }, abortable: Abortable): Promise<ReloadOutcome> {
    return this.inTurn(async () => {
      const { store } = this.deps;
      const left = this.assigned;
      const target = toLocal ? undefined : this.good;
      if (left === undefined) throw new ConfigError("Impossible", "the local configuration is in force already");
      if (target !== undefined && sourceId(target) === sourceId(left)) {
        const message = "the configuration in force is the last known good one; to leave it too, say --to-local";
        throw new ConfigError("Impossible", message);
      }
      const document =
        target && (await this.load(await store.checkpoint(target), store.checkpointPath(target), abortable));
      await this.stored(async () => {
        await store.assign(target);
        if (toLocal) await store.setLastKnownGood(undefined);
      });
      await this.remember(left, "rolled back", "by kubelet config rollback");
      this.assigned = target;
      if (toLocal) this.good = undefined;
      return this.switchTo({ state: target === undefined ? "local" : "good", active: target, document });
    });
  }

  /** Watches over trials until the signal aborts; throws `RolledBack` when the agent must start again to be rid of one. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.inTurn(() => this.check({ signal }));
        await this.sleep(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.reason instanceof AbortedError) await this.ended();
  }

  private async check(abortable: Abortable): Promise<void> {
    if (this.chosen.state !== "trial" || this.chosen.active === undefined) return;
    const trouble = await this.deps.health(abortable);
    abortable.signal.throwIfAborted();
    const now = this.deps.clock.now().mono;
    this.unhealthySince = trouble === undefined ? undefined : (this.unhealthySince ?? now);
    if (trouble !== undefined && now - (this.unhealthySince ?? now) >= UNHEALTHY_MS) {
      return this.giveUp(`the agent was not healthy under it: ${trouble}`, abortable);
    }
    if (trouble === undefined && now - this.trialSince >= this.deps.trialMs() && this.deps.isWhole()) {
      await this.promote(this.chosen.active);
    }
  }

  private async promote(source: ConfigSource): Promise<void> {
    try {
      await this.deps.store.setLastKnownGood(source);
    } catch (error) {
      this.deps.log.error("the last known good configuration could not be written, it is tried again", error);
      return;
    }
    this.good = source;
    this.chosen = { ...this.chosen, state: "good" };
    this.deps.log.info("the configuration is the last known good one now", { source: sourceName(source) });
    this.deps.event({ type: "Normal", reason: "ConfigGood", message: `${describe(source)} has held its trial` });
    await this.remember(source, "good", undefined);
  }

  /** Back to the last known good one, while the agent runs where that is possible. */
  private async giveUp(why: string, abortable: Abortable): Promise<void> {
    const { store } = this.deps;
    const source = this.chosen.active;
    if (source === undefined) return;
    await store.setTrial({ of: sourceId(source), starts: 0, failed: why }).catch((error: unknown) => {
      this.deps.log.error("the failed trial could not be written down", error);
    });
    await this.remember(source, "rolled back", why);
    const chosen = await this.fallBack(why, await store.lastKnownGood(abortable), abortable);
    this.tellRolledBack(chosen);
    const { restart } = await this.switchTo(chosen);
    if (restart.length > 0) {
      throw new ConfigError("RolledBack", `${chosen.error}; the agent ends to start again without it`);
    }
  }

  private async choose(assigned: Pointer, good: Pointer, abortable: Abortable): Promise<Chosen> {
    if (assigned.state === "none") return { state: "local", active: undefined, document: undefined };
    if (assigned.state === "damaged") return this.fallBack(assigned.why, good, abortable);
    const { source } = assigned;
    const isGood = good.state === "set" && sourceId(good.source) === sourceId(source);
    const { store } = this.deps;
    try {
      if (!isGood) await this.countStart(source);
      const document = await this.load(await store.checkpoint(source), store.checkpointPath(source), abortable);
      return { state: isGood ? "good" : "trial", active: source, document };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      await this.remember(source, "rolled back", error.message);
      return this.fallBack(error.message, isGood ? { state: "none" } : good, abortable);
    }
  }

  /** Written down before anything runs under it: whatever happens next, it has happened under this one. */
  private async countStart(source: ConfigSource): Promise<void> {
    const { store } = this.deps;
    const trial = await store.trial(source);
    if (trial.failed !== undefined) throw new ConfigError("Invalid", trial.failed);
    if (trial.starts >= MOST_STARTS) {
      const failed = `the agent crashed ${trial.starts} times under it`;
      await this.stored(() => store.setTrial({ ...trial, failed }));
      throw new ConfigError("Invalid", failed);
    }
    await this.stored(() => store.setTrial({ ...trial, starts: trial.starts + 1 }));
  }

  private async fallBack(why: string, good: Pointer, abortable: Abortable): Promise<Chosen> {
    const local = { state: "rolled back", active: undefined, document: undefined } as const;
    if (good.state === "none") return { ...local, error: why };
    if (good.state === "damaged") return { ...local, error: `${why}; nor is the last known good one: ${good.why}` };
    const { source } = good;
    const { store } = this.deps;
    try {
      const document = await this.load(await store.checkpoint(source), store.checkpointPath(source), abortable);
      return { state: "rolled back", active: source, document, error: why };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return { ...local, error: `${why}; nor is the last known good one: ${error.message}` };
    }
  }

  private async load(text: string, file: string, abortable: Abortable): Promise<ConfigDocument> {
    let document: ConfigDocument;
    try {
      document = await this.deps.parse(text, file, abortable);
    } catch (error) {
      abortable.signal.throwIfAborted();
      throw new ConfigError("Invalid", `${file}: ${messageOf(error)}`, { cause: error });
    }
    const problems = this.deps.judge(document);
    if (problems.length > 0) throw new ConfigError("Invalid", problems.join("; "));
    return document;
  }

  /** The pointer comes last: until then nothing has changed. */
  private async assignNew(text: string, name: string): Promise<ConfigSource> {
    const { store } = this.deps;
    const source = await store.keep(text, name);
    await store.setTrial({ of: sourceId(source), starts: this.isRunning ? 1 : 0 });
    try {
      await store.assign(source);
    } catch (error) {
      // It may have been renamed and only not synced.
      await store.assign(this.assigned).catch(() => undefined);
      throw error;
    }
    return source;
  }

  private async switchTo(chosen: Chosen): Promise<ReloadOutcome> {
    this.chosen = chosen;
    this.trialSince = this.deps.clock.now().mono;
    this.unhealthySince = undefined;
    this.wake();
    return this.deps.use(chosen.document);
  }

  /** Told to stop, so nothing crashed. */
  private async ended(): Promise<void> {
    const { state, active } = this.chosen;
    if (state !== "trial" || active === undefined) return;
    await this.deps.store.setTrial({ of: sourceId(active), starts: 0 }).catch((error: unknown) => {
      this.deps.log.error("the end of the agent could not be written down", error);
    });
  }

  private tellRolledBack({ active, error = "" }: Chosen): void {
    const now = active === undefined ? "the local configuration" : describe(active);
    this.deps.log.warn("the dynamic configuration was rolled back", { why: error, now });
    this.deps.event({ type: "Warning", reason: "ConfigRolledBack", message: `${error}; in force: ${now}` });
  }

  /** The history is for people: a full disk must not stop what it tells of. */
  private async remember(source: ConfigSource | undefined, state: HistoryEntry["state"], why: string | undefined) {
    if (source === undefined) return;
    try {
      const id = sourceId(source);
      const before = (await this.deps.store.history()).find((entry) => entry.id === id);
      // One that was good stays so when another replaces it.
      const kept = state === "replaced" && before?.state !== "trial" ? before?.state : state;
      const at = before?.at ?? new Date(this.deps.clock.now().wall).toISOString();
      await this.deps.store.remember({ id, name: sourceName(source), at, state: kept ?? state, ...(why && { why }) });
    } catch (error) {
      this.deps.log.warn("the history of the configuration could not be written", { error: messageOf(error) });
    }
  }

  private async stored<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      throw new ConfigError("NotStored", `the configuration could not be written: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.tail.then(work);
    this.tail = turn.catch(() => undefined);
    return turn;
  }

  /** Nothing is on trial: until something is. */
  private async sleep(signal: AbortSignal): Promise<void> {
    const scope = new AbortScope([signal]);
    this.wake = () => scope.abort();
    try {
      const left = this.report().trialLeftMs;
      // A trial whose time is over but that waits (for health, for a restart) is looked at as often as any.
      const ms = left === undefined ? NEVER_MS : left === 0 ? CHECK_EVERY_MS : Math.min(CHECK_EVERY_MS, left);
      await this.deps.clock.sleep(ms, { signal: scope.signal });
    } catch (error) {
      if (signal.aborted) throw error;
    } finally {
      scope.dispose();
    }
  }
}

/** Nothing to wait for but a wake-up; the number is a week. */
const NEVER_MS = 604_800_000;

function sourceOf(pointer: Pointer): ConfigSource | undefined {
  return pointer.state === "set" ? pointer.source : undefined;
}

function describe(source: ConfigSource): string {
  return `configuration ${sourceId(source)} from ${sourceName(source)}`;
}
