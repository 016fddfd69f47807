import { manifestFiles } from "../adapters/host/manifest-files.ts";
import {
  type agentOptions,
  type ConfigEvent,
  type ConfigInputs,
  type ConfigReport,
  ConfigurationError,
  ConfigWatch,
  type DynamicConfiguration,
  type HistoryEntry,
  LiveConfiguration,
  type LoadedConfiguration,
  type OptionStore,
  type ReloadOutcome,
  type ReloadScope,
  reportSettings,
} from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { watchPath } from "../lib/file-watch.ts";
import { fixed } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { AgentConfiguration } from "../localapi/index.ts";

/** What the agent was started with, and how to read it again. */
export interface StartConfiguration {
  readonly inputs: ConfigInputs;
  readonly loaded: LoadedConfiguration;
  read(abortable: Abortable): Promise<ConfigInputs>;
}

export interface RunningConfigurationDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: OptionStore<typeof agentOptions>;
  readonly live: LiveConfiguration;
  /** Undefined without `--dynamic-config-dir`. */
  readonly dynamic: DynamicConfiguration | undefined;
  /** Calls `fn` at each SIGHUP. */
  onReload(fn: () => void, abortable: Abortable): void;
}

/** The largest file that `config apply` takes, in bytes; that of `--config` has the same limit. */
const MOST_BYTES = 10 * 1024 * 1024;

/** The configuration of an agent that runs: its files are watched, SIGHUP and the commands change it. */
export class RunningConfiguration implements AgentConfiguration {
  constructor(private readonly deps: RunningConfigurationDeps) {}

  /** Undefined without `--dynamic-config-dir`. */
  get dynamic(): DynamicConfiguration | undefined {
    return this.deps.dynamic;
  }

  report(): ConfigReport {
    const { live, store, dynamic } = this.deps;
    return {
      settings: reportSettings(live.loaded, store.current, live.waiting),
      problems: live.problems,
      ...(dynamic && { dynamic: dynamic.report() }),
    };
  }

  /** Throws with all that is wrong. */
  async reload({ signal }: Abortable): Promise<ReloadOutcome> {
    const outcome = await this.deps.live.reload("all", { signal });
    if (outcome.problems.length > 0) throw new ConfigurationError("Invalid", outcome.problems.join("\nerror: "));
    return outcome;
  }

  async apply(file: string, { signal }: Abortable): Promise<ReloadOutcome> {
    const dynamic = this.needDynamic();
    const text = await manifestFiles.read(file, { signal, maxBytes: MOST_BYTES }).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new ConfigurationError("Invalid", `${file}: ${messageOf(error)}`, { cause: error });
    });
    return dynamic.apply(text, file, { signal });
  }

  async rollback(options: { readonly toLocal: boolean }, { signal }: Abortable): Promise<ReloadOutcome> {
    return this.needDynamic().rollback(options, { signal });
  }

  async history(): Promise<readonly HistoryEntry[]> {
    return this.needDynamic().history();
  }

  /** Follows the files, SIGHUP and trials until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, live, dynamic, onReload } = this.deps;
    const reload = (): void => {
      log.info("SIGHUP: the configuration is read again");
      live.reload("all", { signal }).catch((error: unknown) => {
        if (!signal.aborted) log.error("the configuration could not be read again", error);
      });
    };
    onReload(reload, { signal });
    await Promise.all([this.watch().run(signal), dynamic?.run(signal)]);
  }

  private watch(): ConfigWatch {
    const { clock, store, live } = this.deps;
    const { configWatch } = store.current;
    const scope: ReloadScope = configWatch === "all" ? "all" : "live";
    return new ConfigWatch(
      {
        clock,
        watch: (path, options) => watchPath(path, { ...options, clock }),
        stamp: async (path, abortable) => (await manifestFiles.stat(path, abortable))?.stamp,
        places: () => live.places,
        changed: (abortable) => live.reload(scope, abortable),
      },
      fixed(configWatch !== "off"),
    );
  }

  private needDynamic(): DynamicConfiguration {
    const { dynamic } = this.deps;
    if (dynamic !== undefined) return dynamic;
    throw new ConfigurationError(
      "Impossible",
      "the agent runs without --dynamic-config-dir; change the file of --config",
    );
  }
}

/** Builds `LiveConfiguration` from what the agent was started with. */
export function liveConfiguration(
  deps: { readonly store: OptionStore<typeof agentOptions>; readonly log: Logger; event(event: ConfigEvent): void },
  start: StartConfiguration & { readonly dynamic?: Parameters<LiveConfiguration["useDynamic"]>[0] },
): LiveConfiguration {
  const { dynamic, ...rest } = start;
  const read = (abortable: Abortable): Promise<ConfigInputs> => start.read(abortable);
  return new LiveConfiguration({ ...deps, read }, { ...rest, ...(dynamic && { dynamic }) });
}
