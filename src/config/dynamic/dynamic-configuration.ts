import { type Abortable, AbortedError, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Logger } from "../../lib/log.ts";
import { ConfigurationError } from "../configuration-error.ts";
import type { ConfigDocument } from "../document.ts";
import type { ConfigEvent, ReloadOutcome } from "../live-configuration.ts";
import { type ChooserDeps, type Chosen, ConfigChooser, stored } from "./chooser.ts";
import { ConfigHistory } from "./history.ts";
import type { DynamicReport, Follow } from "./report.ts";
import { type ConfigSource, sourceId, sourceName } from "./source.ts";
import type { ConfigMapVersion, HistoryEntry, Pointer } from "./store.ts";

export interface DynamicDeps extends ChooserDeps {
  readonly clock: Clock;
  readonly log: Logger;
  event(event: ConfigEvent): void;
  /** Puts it in force as far as that goes while the agent runs; undefined is the local one. */
  use(document: ConfigDocument | undefined): Promise<ReloadOutcome>;
  /** True when nothing of the configuration waits for a restart. */
  isWhole(): boolean;
  /** What is wrong with the agent, or undefined. */
  health(abortable: Abortable): Promise<string | undefined>;
  /** How long a configuration must hold, in milliseconds. */
  trialMs(): number;
}

/** Unhealthy for this long during the trial is too long: a runtime's own restart takes less. */
export const UNHEALTHY_MS = 60_000;
/** The shortest patience, however short the trial is. */
const LEAST_PATIENCE_MS = 10_000;
const CHECK_EVERY_MS = 5000;

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

  private followed: Follow | undefined;
  private readonly listeners = new Listeners();
  private readonly chooser: ConfigChooser;
  private readonly past: ConfigHistory;

  constructor(private readonly deps: DynamicDeps) {
    this.chooser = new ConfigChooser(deps);
    this.past = new ConfigHistory(deps);
  }

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
    this.chosen = await this.chooser.choose(assigned, good, abortable);
    this.trialSince = this.deps.clock.now().mono;
    const { error } = this.chosen;
    if (error !== undefined) {
      await this.past.remember(this.assigned, "rolled back", error);
      this.tellRolledBack(this.chosen);
    }
    return this.chosen.document;
  }

  report(): DynamicReport {
    const { state, active, error } = this.chosen;
    const left = this.trialSince + this.deps.trialMs() - this.deps.clock.now().mono;
    return {
      directory: this.deps.store.directory,
      state,
      assigned: this.assigned,
      active,
      lastKnownGood: this.good,
      ...(error === undefined ? {} : { error }),
      ...(state === "trial" ? { trialLeftMs: Math.max(0, left) } : {}),
      ...(active !== undefined && this.isRunning && !this.deps.isWhole() ? { waitsForRestart: true } : {}),
      ...(this.followed === undefined ? {} : { followed: this.followed }),
    };
  }

  history(): Promise<readonly HistoryEntry[]> {
    return this.deps.store.history();
  }

  /** Calls `fn` after each change of what `report` returns, except for the time that is left. */
  onChange(fn: () => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }

  /** Who decides from now on; meanwhile `apply` and `rollback` are refused. */
  follow(followed: Follow | undefined): void {
    if (this.followed?.by === followed?.by && this.followed?.error === followed?.error) return;
    this.followed = followed;
    this.tellChange();
  }

  /** Takes a configuration on trial. One that does not load or cannot be stored changes nothing. */
  apply(text: string, name: string, abortable: Abortable): Promise<ReloadOutcome> {
    return this.inTurn(async () => {
      this.refuseIfFollowed();
      const document = await this.chooser.load(text, name, abortable);
      const source = await this.take(() => this.deps.store.keep(text, name));
      // From here on it is named where it is kept, not where it came from.
      const kept = { ...document, file: this.deps.store.checkpointPath(source) };
      return this.switchTo({ state: "trial", active: source, document: kept });
    });
  }

  /**
   * Takes the configuration of a ConfigMap on trial, as the cluster assigned it: one that does not load is assigned all
   * the same, and rolled back. May be repeated: what is assigned already is left alone, whatever became of it.
   */
  assign(text: string, version: ConfigMapVersion, abortable: Abortable): Promise<void> {
    return this.inTurn(async () => {
      if (await this.isAssigned(version)) return;
      const source = await this.take(() => this.deps.store.keepConfigMap(text, version));
      let document: ConfigDocument;
      try {
        document = await this.chooser.kept(source, abortable);
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error;
        await this.drop(source, error.message, abortable);
        return;
      }
      await this.switchTo({ state: "trial", active: source, document });
    });
  }

  /** The cluster assigns nothing any more: back to the local configuration. One of this machine's own is left alone. */
  release(why: string): Promise<void> {
    return this.inTurn(async () => {
      if (this.assigned?.kind === "configMap") await this.leave(this.assigned, { why, toLocal: true });
    });
  }

  /** Leaves the assigned configuration for the last known good one, or for the local one. */
  rollback({ toLocal }: { readonly toLocal: boolean }, abortable: Abortable): Promise<ReloadOutcome> {
    return this.inTurn(async () => {
      this.refuseIfFollowed();
      const left = this.assigned;
      const target = toLocal ? undefined : this.good;
      if (left === undefined) throw new ConfigurationError("Impossible", "the local configuration is in force already");
      if (target !== undefined && sourceId(target) === sourceId(left)) {
        const message = "the configuration in force is the last known good one; to leave it as well, use --to-local";
        throw new ConfigurationError("Impossible", message);
      }
      const to = target && { source: target, document: await this.chooser.kept(target, abortable) };
      return this.leave(left, { why: "by kubelet config rollback", toLocal, ...(to && { to }) });
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
    const patienceMs = Math.min(UNHEALTHY_MS, Math.max(LEAST_PATIENCE_MS, this.deps.trialMs()));
    if (trouble !== undefined && now - (this.unhealthySince ?? now) >= patienceMs) {
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
      this.deps.log.error("Failed to persist last known good configuration, will retry", error);
      return;
    }
    this.good = source;
    this.chosen = { ...this.chosen, state: "good" };
    this.deps.log.info("Promoted configuration to last known good", { source: sourceName(source) });
    this.deps.event({ type: "Normal", reason: "ConfigGood", message: `${describe(source)} has held its trial` });
    await this.past.remember(source, "good", undefined);
    this.tellChange();
  }

  /** Back to the last known good one, while the agent runs where that is possible. */
  private async giveUp(why: string, abortable: Abortable): Promise<void> {
    const source = this.chosen.active;
    if (source === undefined) return;
    const { restart } = await this.drop(source, why, abortable);
    if (restart.length > 0) {
      throw new ConfigurationError("RolledBack", `${this.chosen.error}; the agent ends to start again without it`);
    }
  }

  /** The assigned one stays assigned, so that it is not tried again; another one is put in force. */
  private async drop(source: ConfigSource, why: string, abortable: Abortable): Promise<ReloadOutcome> {
    const { store } = this.deps;
    await store.setTrial({ of: sourceId(source), starts: 0, failed: why }).catch((error: unknown) => {
      this.deps.log.error("Failed to persist failed configuration trial", error);
    });
    await this.past.remember(source, "rolled back", why);
    const chosen = await this.chooser.fallBack(why, await store.lastKnownGood(abortable), abortable);
    this.tellRolledBack(chosen);
    return this.switchTo(chosen);
  }

  private async leave(
    left: ConfigSource,
    { why, toLocal, to }: { why: string; toLocal: boolean; to?: { source: ConfigSource; document: ConfigDocument } },
  ): Promise<ReloadOutcome> {
    const { store } = this.deps;
    await stored(async () => {
      await store.assign(to?.source);
      if (toLocal) await store.setLastKnownGood(undefined);
    });
    await this.past.remember(left, "rolled back", why);
    this.assigned = to?.source;
    if (toLocal) this.good = undefined;
    return this.switchTo({ state: to === undefined ? "local" : "good", active: to?.source, document: to?.document });
  }

  private refuseIfFollowed(): void {
    if (this.followed === undefined) return;
    const message = `the configuration of this node is assigned by ${this.followed.by}: change it there`;
    throw new ConfigurationError("Impossible", message);
  }

  /** True when exactly this is assigned and what is kept of it is whole. */
  private async isAssigned(version: ConfigMapVersion): Promise<boolean> {
    if (this.assigned === undefined || sourceId(this.assigned) !== sourceId(version)) return false;
    return this.deps.store.checkpoint(this.assigned).then(
      () => true,
      () => false,
    );
  }

  /** Keeps and assigns another one. */
  private async take(keep: () => Promise<ConfigSource>): Promise<ConfigSource> {
    const source = await stored(() => this.assignNew(keep));
    await this.past.remember(this.assigned, "replaced", undefined);
    this.assigned = source;
    await this.past.remember(source, "trial", undefined);
    return source;
  }

  /** The pointer comes last: until then nothing has changed. */
  private async assignNew(keep: () => Promise<ConfigSource>): Promise<ConfigSource> {
    const { store } = this.deps;
    const source = await keep();
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
    const outcome = await this.deps.use(chosen.document);
    this.tellChange();
    return outcome;
  }

  /** Told to stop, so nothing crashed. */
  private async ended(): Promise<void> {
    const { state, active } = this.chosen;
    if (state !== "trial" || active === undefined) return;
    await this.deps.store.setTrial({ of: sourceId(active), starts: 0 }).catch((error: unknown) => {
      this.deps.log.error("Failed to persist clean shutdown of the agent", error);
    });
  }

  private tellChange(): void {
    this.listeners.call();
  }

  private tellRolledBack({ active, error = "" }: Chosen): void {
    const now = active === undefined ? "the local configuration" : describe(active);
    this.deps.log.warn("Rolled back dynamic configuration", { why: error, now });
    this.deps.event({ type: "Warning", reason: "ConfigRolledBack", message: `${error}; in force: ${now}` });
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
      // A trial that is past its time but waits (for health, for a restart) is checked as often as any.
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
