import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { watchPath } from "../lib/file-watch.ts";
import { fixed } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { agentOptions } from "./agent-options.ts";
import { ConfigWatch } from "./config-watch.ts";
import { ConfigurationError } from "./configuration-error.ts";
import type { DynamicConfiguration } from "./dynamic/dynamic-configuration.ts";
import type { HistoryEntry } from "./dynamic/store.ts";
import { type ConfigEvent, LiveConfiguration, type ReloadOutcome, type ReloadScope } from "./live-configuration.ts";
import type { ConfigInputs, LoadedConfiguration } from "./load.ts";
import type { ConfigFiles } from "./read.ts";
import { type ConfigReport, reportSettings } from "./report.ts";
import type { OptionStore } from "./store.ts";

/** The configuration that the agent was started with, and how to read it again. */
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
  /** Reads the configuration files of the host. */
  readonly files: Pick<ConfigFiles, "read" | "stat">;
  /** Calls `fn` at each SIGHUP. */
  onReload(fn: () => void, abortable: Abortable): void;
}

/** Size limit of the file of `config apply` in bytes, the same as for `--config`. */
const MOST_BYTES = 10 * 1024 * 1024;

/** The configuration of the running agent: follows its files and SIGHUP, and serves the commands that change it. */
export class RunningConfiguration {
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

  /** Rejects with all problems. */
  async reload({ signal }: Abortable): Promise<ReloadOutcome> {
    const outcome = await this.deps.live.reload("all", { signal });
    if (outcome.problems.length > 0) throw new ConfigurationError("Invalid", outcome.problems.join("\nerror: "));
    return outcome;
  }

  async apply(file: string, { signal }: Abortable): Promise<ReloadOutcome> {
    const dynamic = this.needDynamic();
    const text = await this.deps.files.read(file, { signal, maxBytes: MOST_BYTES }).catch((error: unknown) => {
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

  /** Follows the files, SIGHUP and trials of dynamic configurations until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, live, dynamic, onReload } = this.deps;
    const reload = (): void => {
      log.info("Received SIGHUP, reloading the configuration");
      live.reload("all", { signal }).catch((error: unknown) => {
        if (!signal.aborted) log.error("Failed to reload the configuration", error);
      });
    };
    onReload(reload, { signal });
    await Promise.all([this.watch().run(signal), dynamic?.run(signal)]);
  }

  private watch(): ConfigWatch {
    const { clock, store, live, files } = this.deps;
    const { configWatch } = store.current;
    const scope: ReloadScope = configWatch === "all" ? "all" : "live";
    return new ConfigWatch(
      {
        clock,
        watch: (path, options) => watchPath(path, { ...options, clock }),
        stamp: async (path, abortable) => (await files.stat(path, abortable))?.stamp,
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

/** Builds `LiveConfiguration` from the configuration at the start. */
export function liveConfiguration(
  deps: { readonly store: OptionStore<typeof agentOptions>; readonly log: Logger; event(event: ConfigEvent): void },
  start: StartConfiguration & { readonly dynamic?: Parameters<LiveConfiguration["useDynamic"]>[0] },
): LiveConfiguration {
  const { dynamic, ...rest } = start;
  const read = (abortable: Abortable): Promise<ConfigInputs> => start.read(abortable);
  return new LiveConfiguration({ ...deps, read }, { ...rest, ...(dynamic && { dynamic }) });
}
