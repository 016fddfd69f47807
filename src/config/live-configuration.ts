import type { Abortable } from "../lib/abort.ts";
import type { Logger } from "../lib/log.ts";
import { type agentOptions, type OptionName, optionOf } from "./agent-options.ts";
import type { ConfigDocument } from "./document.ts";
import {
  type ConfigInputs,
  contradictionsOf,
  type LoadedConfiguration,
  loadConfiguration,
  problemLines,
} from "./load.ts";
import type { OptionStore, Waiting } from "./store.ts";

/** An event about the agent's configuration. */
export interface ConfigEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: "ConfigChanged" | "ConfigInvalid" | "ConfigNeedsRestart" | "ConfigRolledBack" | "ConfigGood";
  readonly message: string;
}

export interface LiveConfigurationDeps {
  readonly store: OptionStore<typeof agentOptions>;
  readonly log: Logger;
  /** Reads the command line and its files anew. */
  read(abortable: Abortable): Promise<ConfigInputs>;
  event(event: ConfigEvent): void;
}

/** What became of one change. */
export interface ReloadOutcome extends Waiting<typeof agentOptions> {
  /** Options whose new values are in force now. */
  readonly applied: readonly OptionName[];
  /** Why nothing was changed; empty when the configuration is good. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** `all`: also what can evict or reject pods. `live`: only the rest. */
export type ReloadScope = "all" | "live";

const NOTHING_WAITS: Waiting<typeof agentOptions> = { restart: [], reload: [] };

/**
 * The configuration in force and the one that was read last. A change is loaded and judged as a whole and then applied
 * in place; one that is not valid leaves everything as it is. Changes are handled one after the other.
 */
export class LiveConfiguration {
  /** The last valid one; values that wait differ from those in force. */
  private valid: LoadedConfiguration;
  /** The last inputs that are valid without a dynamic configuration too, to fall back on. */
  private base: ConfigInputs;
  private looked: readonly string[];
  private dynamic: ConfigDocument | undefined;
  private waits = NOTHING_WAITS;
  private invalid: readonly string[] = [];
  private reportedWaiting = "";
  private tail: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly deps: LiveConfigurationDeps,
    start: { readonly loaded: LoadedConfiguration; readonly inputs: ConfigInputs; readonly dynamic?: ConfigDocument },
  ) {
    this.valid = start.loaded;
    this.base = start.inputs;
    this.looked = start.inputs.places ?? [];
    this.dynamic = start.dynamic;
  }

  /** The last valid configuration. */
  get loaded(): LoadedConfiguration {
    return this.valid;
  }

  /** Changed options that are not in force. */
  get waiting(): Waiting<typeof agentOptions> {
    return this.waits;
  }

  /** Why the newest change is not in force. */
  get problems(): readonly string[] {
    return this.invalid;
  }

  /** Files and directories to watch. */
  get places(): readonly string[] {
    return this.looked;
  }

  /** Reads all files again and applies what may be. */
  reload(scope: ReloadScope, abortable: Abortable): Promise<ReloadOutcome> {
    return this.inTurn(async () => {
      const inputs = await this.deps.read(abortable);
      this.looked = inputs.places ?? [];
      this.deps.log.debug(2, "Reloaded configuration", { files: this.looked });
      return this.take(inputs, scope);
    });
  }

  /** What a dynamic configuration in the place of the file would come to; applies nothing. */
  judge(dynamic: ConfigDocument | undefined): LoadedConfiguration {
    return loadConfiguration(withDynamic(this.base, dynamic));
  }

  /** Replaces the file by a dynamic configuration, or restores the file. An invalid one changes nothing. */
  useDynamic(dynamic: ConfigDocument | undefined): Promise<ReloadOutcome> {
    return this.inTurn(async () => {
      const before = this.dynamic;
      this.dynamic = dynamic;
      const outcome = this.take(this.base, "all");
      if (outcome.problems.length > 0) this.dynamic = before;
      return outcome;
    });
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.tail.then(work);
    this.tail = turn.catch(() => undefined);
    return turn;
  }

  private take(inputs: ConfigInputs, scope: ReloadScope): ReloadOutcome {
    const loaded = loadConfiguration(withDynamic(inputs, this.dynamic));
    const warnings = problemLines(loaded.warnings);
    const local = this.dynamic === undefined ? loaded : loadConfiguration(inputs);
    const problems = problemLines(loaded.problems.length > 0 ? loaded.problems : local.problems);
    if (problems.length > 0) return this.refuse(problems, warnings);
    const { store } = this.deps;
    const planned = store.plan(loaded.values, { reload: scope === "all" });
    const { reload } = planned;
    let { applied, restart } = planned;
    const hasWaiting = restart.length + reload.length > 0;
    if (hasWaiting && contradictionsOf(planned.values).length > 0) {
      // Only together with what waits are the new values good: all of them wait for the restart.
      restart = [...restart, ...applied];
      applied = [];
    } else if (applied.length > 0) store.update(loaded.values, { reload: scope === "all" });
    this.base = inputs;
    this.valid = loaded;
    this.invalid = [];
    this.waits = { restart, reload };
    this.report(applied);
    return { applied, restart, reload, problems: [], warnings };
  }

  private refuse(problems: readonly string[], warnings: readonly string[]): ReloadOutcome {
    const message = problems.join("; ");
    if (message !== this.invalid.join("; ")) {
      this.deps.log.warn("Failed to reload configuration, keeping the previous one", { problems });
      this.deps.event({ type: "Warning", reason: "ConfigInvalid", message });
    }
    this.invalid = problems;
    return { ...this.waits, applied: [], problems, warnings };
  }

  private report(applied: readonly OptionName[]): void {
    const { log, event } = this.deps;
    if (applied.length > 0) {
      const settings = shown(applied);
      log.info("Applied configuration change", { settings });
      event({ type: "Normal", reason: "ConfigChanged", message: `in force now: ${settings}` });
    }
    const { restart, reload } = this.waits;
    const waiting = [
      ...(restart.length === 0 ? [] : [`a restart for ${shown(restart)}`]),
      ...(reload.length === 0 ? [] : [`SIGHUP or "kubelet config apply" for ${shown(reload)}`]),
    ].join(", and ");
    if (waiting !== "" && waiting !== this.reportedWaiting) {
      log.warn("Changed settings take effect after a restart or reload", {
        restart: shown(restart),
        reload: shown(reload),
      });
      event({ type: "Warning", reason: "ConfigNeedsRestart", message: `the configuration needs ${waiting}` });
    }
    this.reportedWaiting = waiting;
  }
}

/** The dynamic configuration stands in the place of the file. */
export function withDynamic(inputs: ConfigInputs, dynamic: ConfigDocument | undefined): ConfigInputs {
  return dynamic === undefined ? inputs : { ...inputs, file: dynamic, fileRole: "dynamic" };
}

/** Options as the user knows them. */
function shown(names: readonly OptionName[]): string {
  return names.map((name) => optionOf(name).field ?? `--${optionOf(name).flag}`).join(" ");
}
