import type { Clock } from "../lib/clock.ts";
import { createLogger, type Logger, type LogLevels, type LogSink } from "../lib/log.ts";
import type { AgentOptions } from "./agent-options.ts";

/** Where log lines go: all to `sink`, or those of level info to `infoSink`. */
export interface LogSinks {
  readonly sink: LogSink;
  readonly infoSink?: LogSink;
}

/** The sinks as configured: `infoSink` is used only if the streams are split. */
export function logSinks(values: AgentOptions, sinks: Required<LogSinks>): LogSinks {
  const isSplit = values.loggingFormat === "json" ? values.logJsonSplitStream : values.logTextSplitStream;
  return isSplit ? sinks : { sink: sinks.sink };
}

/** The logger of the agent, in the configured format. */
export function agentLogger(
  clock: Clock,
  { loggingFormat, verbosity, modules }: Pick<AgentOptions, "loggingFormat"> & LogLevels,
  sinks: LogSinks,
): Logger {
  return createLogger({ ...sinks, clock, format: loggingFormat === "json" ? "json" : "text", verbosity, modules });
}
