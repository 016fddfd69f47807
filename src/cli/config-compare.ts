import {
  type AgentOptions,
  API_VERSION,
  KIND,
  loadConfiguration,
  type OptionName,
  optionNames,
  optionOf,
} from "../config/index.ts";

/** The settings of an empty file. */
export function defaultValues(): AgentOptions {
  const value = { apiVersion: API_VERSION, kind: KIND };
  const file = { file: "", directory: "/", value, line: 1, warnings: [] };
  return loadConfiguration({ flags: { values: {}, given: new Set(), problems: [] }, file }).values;
}

/** Options that differ, in the table's order. */
export function differences(a: AgentOptions, b: AgentOptions): OptionName[] {
  const written = (values: AgentOptions, name: OptionName): string =>
    JSON.stringify(optionOf(name).kind.encode(values[name])) ?? "";
  return optionNames.filter((name) => written(a, name) !== written(b, name));
}

/** The name of an option: its field, else its flag. */
export function nameOf(option: OptionName): string {
  const { field, flag } = optionOf(option);
  return field ?? `--${flag}`;
}
