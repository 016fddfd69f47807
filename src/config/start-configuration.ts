import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { fixed, select } from "../lib/live.ts";
import type { Logger, LogLevels } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { type AgentOptions, agentOptions } from "./agent-options.ts";
import type { ConfigDocument } from "./document.ts";
import { DynamicConfiguration } from "./dynamic/dynamic-configuration.ts";
import type { DynamicReport } from "./dynamic/report.ts";
import { sourceName } from "./dynamic/source.ts";
import type { DynamicStore } from "./dynamic/store.ts";
import { allFlags, encodeConfiguration } from "./encode.ts";
import { type ConfigEvent, type LiveConfiguration, withDynamic } from "./live-configuration.ts";
import { type ConfigInputs, loadConfiguration, notActedOn, problemLines } from "./load.ts";
import { type ConfigFiles, oldKubelets } from "./read.ts";
import { liveConfiguration, RunningConfiguration, type StartConfiguration } from "./running-configuration.ts";
import { OptionStore } from "./store.ts";

/** What the configuration needs of the host and of the program. */
export interface StartConfigurationDeps {
  readonly clock: Clock;
  readonly files: Pick<ConfigFiles, "read" | "stat">;
  openStore(directory: string): DynamicStore;
  parse(text: string, file: string, options: Abortable): Promise<ConfigDocument>;
  toLogger(values: AgentOptions, levels: LogLevels): Logger;
  onReload(fn: () => void, abortable: Abortable): void;
}

/** The agent, as far as its configuration needs it. */
export interface ConfiguredAgent {
  recordEvent(event: ConfigEvent): void;
  trouble(abortable: Abortable): Promise<string | undefined>;
}

export interface StartedConfiguration {
  readonly store: OptionStore<typeof agentOptions>;
  readonly log: Logger;
  readonly configuration: RunningConfiguration;
  /** Connects the agent once it is built; events that came before are recorded now. */
  attach(agent: ConfiguredAgent, metrics: Metrics): void;
}

/** Decides the configuration that the agent runs with, including the dynamic one, before the agent is built. */
export async function startConfiguration(
  deps: StartConfigurationDeps,
  given: StartConfiguration,
  abortable: Abortable,
): Promise<StartedConfiguration> {
  const { clock, onReload, files, parse } = deps;
  const local = given.loaded.values;
  const directory = local.dynamicConfigDir;
  const start = directory === "" ? given : await withOldFields(given);
  /** Built after the dynamic configuration is chosen. */
  const later: { agent?: ConfiguredAgent; live?: LiveConfiguration } = {};
  let log = deps.toLogger(local, { verbosity: fixed(local.verbosity), modules: fixed(local.vmodule) });
  let store = new OptionStore(agentOptions, local);
  const pending: ConfigEvent[] = [];
  const event = (next: ConfigEvent): void => {
    if (later.agent === undefined) pending.push(next);
    else later.agent.recordEvent(next);
  };
  const load = (document: ConfigDocument) =>
    later.live?.judge(document) ?? loadConfiguration(withDynamic(start.inputs, document));
  const dynamic =
    directory === ""
      ? undefined
      : new DynamicConfiguration({
          store: deps.openStore(directory),
          clock,
          event,
          parse,
          get log() {
            return log;
          },
          judge: (document) => problemLines(load(document).problems),
          use: (document) => needed(later.live).useDynamic(document),
          isWhole: () => later.live?.waiting.restart.length === 0,
          health: async (asked) => later.agent?.trouble(asked),
          trialMs: () => store.current.configTrialDuration,
        });
  const document = await dynamic?.start(abortable);
  const loaded = document === undefined ? start.loaded : load(document);
  store = new OptionStore(agentOptions, loaded.values);
  log = deps.toLogger(loaded.values, {
    verbosity: select(store.live("verbosity"), ({ verbosity }) => verbosity),
    modules: select(store.live("vmodule"), ({ vmodule }) => vmodule),
  });
  for (const warning of problemLines(loaded.warnings)) log.warn("Configuration has a problem", { warning });
  logNotActedOn(log, notActedOn(loaded));
  logSettings(log, loaded.values);
  const live = liveConfiguration({ store, log, event }, { ...start, loaded, ...(document && { dynamic: document }) });
  later.live = live;
  const configuration = new RunningConfiguration({ clock, log, store, live, dynamic, files, onReload });
  return {
    store,
    log,
    configuration,
    attach(built, metrics) {
      later.agent = built;
      for (const next of pending) built.recordEvent(next);
      if (dynamic !== undefined) countSources(metrics, () => dynamic.report());
    },
  };
}

/** Logs the settings that this version accepts without acting on them. */
export function logNotActedOn(log: Logger, settings: readonly string[]): void {
  if (settings.length > 0)
    log.info("Accepted settings that this version does not act on", { settings: settings.join(" ") });
}

/** Logs every flag at level 1 and the configuration at level 5, as Kubernetes does. */
function logSettings(log: Logger, values: AgentOptions): void {
  const most = Math.max(values.verbosity, ...values.vmodule.map(({ verbosity }) => verbosity));
  if (most < 1) return;
  for (const flag of allFlags(values)) log.debug(1, `FLAG: ${flag}`);
  if (most >= 5) log.debug(5, "Loaded configuration", { config: encodeConfiguration(values, { masks: true }) });
}

/** Dynamic configurations may use the fields of the older kubelets that had them. */
async function withOldFields(given: StartConfiguration): Promise<StartConfiguration> {
  const old = await oldKubelets();
  const add = (inputs: ConfigInputs): ConfigInputs => ({ ...inputs, old: inputs.old ?? old });
  return { ...given, inputs: add(given.inputs), read: async (abortable) => add(await given.read(abortable)) };
}

function needed(live: LiveConfiguration | undefined): LiveConfiguration {
  if (live === undefined) throw new Error("use dynamic configuration: the agent has not started");
  return live;
}

/** The metrics that kubelets of v1.11 to v1.23 had. */
function countSources(metrics: Metrics, report: () => DynamicReport): void {
  const labels = ["source", "uid", "resource_version", "kubelet_key"].map((name) => `node_config_${name}`);
  for (const [name, key] of [
    ["assigned", "assigned"],
    ["active", "active"],
    ["last_known_good", "lastKnownGood"],
  ] as const) {
    const values = () => {
      const source = report()[key];
      const { uid = "", resourceVersion = "", key: dataKey = "" } = source ?? {};
      return [[[sourceName(source), uid, resourceVersion, dataKey], 1]] as const;
    };
    metrics.gaugeFrom(`kubelet_node_config_${name}`, `The ${name} dynamic configuration.`, { labels, values });
  }
  metrics.gaugeFrom("kubelet_node_config_error", "1 while the assigned configuration is not the active one.", {
    values: () => [[[], report().error === undefined && report().followed?.error === undefined ? 0 : 1]],
  });
}
