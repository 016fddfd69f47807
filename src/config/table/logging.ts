import { bool, int, oneOf, quantity, spanMs, spanOrNanos } from "../kinds.ts";
import { moduleLevels } from "../kinds-objects.ts";
import { option } from "../option.ts";
import { amount, atLeast, positive } from "../rules.ts";
import { moduleRule } from "../rules-fields.ts";
import { configFields } from "./config-fields.ts";

/** The log. */
export const loggingFields = configFields({
  verbosity: option(int, {
    flag: "v",
    default: 0,
    topic: "Logging",
    help: "Log verbosity: 0 is normal, 2 adds details, 4 and above is for debugging.",
    since: "1.23",
    short: "v",
    field: "logging.verbosity",
    applies: "live",
    deprecated: undefined,
    validate: atLeast(0),
  }),
  vmodule: option(moduleLevels, {
    flag: "vmodule",
    default: [],
    topic: "Logging",
    help: "Verbosity of single source files, named without folder and ending (text format only).",
    since: "1.23",
    field: "logging.vmodule",
    applies: "live",
    deprecated: undefined,
    validate: moduleRule,
  }),
  loggingFormat: option(oneOf("text", "json"), {
    flag: "logging-format",
    default: "text",
    topic: "Logging",
    help: "Form of the log lines.",
    since: "1.19",
    field: "logging.format",
  }),
  logFlushFrequency: option(spanOrNanos, {
    flag: "log-flush-frequency",
    default: "5s",
    topic: "Logging",
    help: "Longest time between flushes; lines are written at once here.",
    since: "1.23",
    field: "logging.flushFrequency",
    effect: "none",
    deprecated: undefined,
    validate: (value) => positive(spanMs(value)),
  }),
  logTextSplitStream: option(bool, {
    flag: "log-text-split-stream",
    default: false,
    topic: "Logging",
    help: "Errors to stderr and the rest to stdout (text format).",
    since: "1.32",
    field: "logging.options.text.splitStream",
  }),
  logTextInfoBufferSize: option(quantity, {
    flag: "log-text-info-buffer-size",
    default: "0",
    topic: "Logging",
    help: "Buffer of the lines that are no errors (text format); lines are written at once here.",
    since: "1.32",
    field: "logging.options.text.infoBufferSize",
    effect: "none",
    validate: amount,
  }),
  logJsonSplitStream: option(bool, {
    flag: "log-json-split-stream",
    default: false,
    topic: "Logging",
    help: "Errors to stderr and the rest to stdout (JSON format).",
    since: "1.23",
    field: "logging.options.json.splitStream",
  }),
  logJsonInfoBufferSize: option(quantity, {
    flag: "log-json-info-buffer-size",
    default: "0",
    topic: "Logging",
    help: "Buffer of the lines that are no errors (JSON format); lines are written at once here.",
    since: "1.23",
    field: "logging.options.json.infoBufferSize",
    effect: "none",
    validate: amount,
  }),
});
