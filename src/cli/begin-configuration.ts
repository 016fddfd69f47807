import {
  type AgentOptions,
  agentOptions,
  allFlags,
  type ConfigDocument,
  type ConfigEvent,
  type ConfigInputs,
  DynamicConfiguration,
  type DynamicReport,
  encodeConfiguration,
  type LiveConfiguration,
  loadConfiguration,
  notActedOn,
  OptionStore,
  oldKubelets,
  problemLines,
  sourceName,
  withDynamic,
} from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { fixed, select } from "../lib/live.ts";
import type { Logger, LogLevels } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { documentParser, openStore } from "./dynamic-store.ts";
import { liveConfiguration, RunningConfiguration, type StartConfiguration } from "./running-configuration.ts";

export interface BeginDeps {
  readonly clock: Clock;
  toLogger(values: AgentOptions, levels: LogLevels): Logger;
  onReload(fn: () => void, abortable: Abortable): void;
}

/** The agent as its configuration sees it. */
export interface ConfiguredAgent {
  recordEvent(event: ConfigEvent): void;
  trouble(abortable: Abortable): Promise<string | undefined>;
}

export interface BegunConfiguration {
  readonly store: OptionStore<typeof agentOptions>;
  readonly log: Logger;
  readonly configuration: RunningConfiguration;
  /** Hands over the agent once it is built; what was to be told before is told now. */
  attach(agent: ConfiguredAgent, metrics: Metrics): void;
}

/** Decides what the agent runs with, the dynamic configuration included, before anything of it is built. */
export async function beginConfiguration(
  deps: BeginDeps,
  given: StartConfiguration,
  abortable: Abortable,
): Promise<BegunConfiguration> {
  const { clock, onReload } = deps;
  const local = given.loaded.values;
  const directory = local.dynamicConfigDir;
  const start = directory === "" ? given : await withOldWords(given);
  /** What is not there yet when the dynamic configuration is chosen. */
  const later: { agent?: ConfiguredAgent; live?: LiveConfiguration } = {};
  let log = deps.toLogger(local, { verbosity: fixed(local.verbosity), modules: fixed(local.vmodule) });
  let store = new OptionStore(agentOptions, local);
  const untold: ConfigEvent[] = [];
  const event = (told: ConfigEvent): void => {
    if (later.agent === undefined) untold.push(told);
    else later.agent.recordEvent(told);
  };
  const load = (document: ConfigDocument) =>
    later.live?.judge(document) ?? loadConfiguration(withDynamic(start.inputs, document));
  const dynamic =
    directory === ""
      ? undefined
      : new DynamicConfiguration({
          ...{ store: openStore(directory, clock), clock, event, parse: documentParser(clock) },
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
  for (const warning of problemLines(loaded.warnings)) log.warn("configuration", { warning });
  tellNotActedOn(log, notActedOn(loaded));
  tellSettings(log, loaded.values);
  const live = liveConfiguration({ store, log, event }, { ...start, loaded, ...(document && { dynamic: document }) });
  later.live = live;
  const configuration = new RunningConfiguration({ clock, log, store, live, dynamic, onReload });
  return {
    ...{ store, log, configuration },
    attach(built, metrics) {
      later.agent = built;
      for (const told of untold) built.recordEvent(told);
      if (dynamic !== undefined) countSources(metrics, () => dynamic.report());
    },
  };
}

/** Once, at the start: settings that a later version acts on. */
export function tellNotActedOn(log: Logger, settings: readonly string[]): void {
  if (settings.length > 0) log.info("accepted, not acted on yet", { settings: settings.join(" ") });
}

/** As the original does: every flag at level 1, the configuration at level 5. */
function tellSettings(log: Logger, values: AgentOptions): void {
  const most = Math.max(values.verbosity, ...values.vmodule.map(({ verbosity }) => verbosity));
  if (most < 1) return;
  for (const flag of allFlags(values)) log.debug(1, `FLAG: ${flag}`);
  if (most >= 5) log.debug(5, "configuration", { config: encodeConfiguration(values, { masks: true }) });
}

/** Dynamic configurations are as old as the kubelets that had them. */
async function withOldWords(given: StartConfiguration): Promise<StartConfiguration> {
  const old = await oldKubelets();
  const add = (inputs: ConfigInputs): ConfigInputs => ({ ...inputs, old: inputs.old ?? old });
  return { ...given, inputs: add(given.inputs), read: async (abortable) => add(await given.read(abortable)) };
}

function needed(live: LiveConfiguration | undefined): LiveConfiguration {
  if (live === undefined) throw new Error("the agent has not begun");
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
