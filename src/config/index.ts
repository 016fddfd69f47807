export { parseAgentOptions, strayWords } from "./agent.ts";
export { agentLogger, type LogSinks, logSinks } from "./agent-logger.ts";
export { type AgentOptions, agentOptions, type OptionName, optionNames, optionOf } from "./agent-options.ts";
export { type ConfigProblem, formatConfigProblem } from "./config-problem.ts";
export { ConfigWatch } from "./config-watch.ts";
export { ConfigurationError } from "./configuration-error.ts";
export { API_VERSION, type ConfigDocument, KIND } from "./document.ts";
export { DynamicConfiguration } from "./dynamic/dynamic-configuration.ts";
export type { DynamicReport, Follow } from "./dynamic/report.ts";
export { type ConfigSource, isBaseName, sourceId, sourceName } from "./dynamic/source.ts";
export { type ConfigMapVersion, DynamicStore, type HistoryEntry } from "./dynamic/store.ts";
export { allFlags, encodeConfiguration, encodeFlags } from "./encode.ts";
export { isGateOn, knownGates } from "./feature-gates.ts";
export { declareGateMetrics } from "./gate-metrics.ts";
export { optionHelp, wrap } from "./help.ts";
export { bool, duration, int, oneOf, optionalInt, text } from "./kinds.ts";
export { type Headers, headers, list } from "./kinds-lists.ts";
export {
  type ConfigEvent,
  LiveConfiguration,
  type ReloadOutcome,
  type ReloadScope,
  withDynamic,
} from "./live-configuration.ts";
export {
  type ConfigInputs,
  deprecations,
  type LoadedConfiguration,
  loadConfiguration,
  notActedOn,
  problemLines,
} from "./load.ts";
export type { OldKubelets } from "./old.ts";
export { type Option, type OptionKind, type OptionTable, option, type Topic, type Values } from "./option.ts";
export { isGiven, type Origin, type Provenance, showOrigin } from "./origin.ts";
export { flagDefault, type Parsed, parseOptions } from "./parse.ts";
export { type ConfigFiles, oldKubelets, parseCommandLine, type ReadDeps, readFiles, readInputs } from "./read.ts";
export {
  type ConfigReport,
  encodedValueOf,
  type ReportedSetting,
  reportSettings,
  shownValueOf,
} from "./report.ts";
export { cpusIn, reservationsOf } from "./reservations.ts";
export { absolutePath, atLeast, between, didYouMean, ip, unixEndpoint } from "./rules.ts";
export { RunningConfiguration, type StartConfiguration } from "./running-configuration.ts";
export { logNotActedOn, startConfiguration } from "./start-configuration.ts";
export { OptionStore, type Waiting } from "./store.ts";
