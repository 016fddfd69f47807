import type { OptionTable, Values } from "./option.ts";
import { apiServerFlags } from "./table/apiserver.ts";
import { cadvisorFlags } from "./table/cadvisor.ts";
import { evictionFields } from "./table/eviction.ts";
import { loggingFields } from "./table/logging.ts";
import { processFlags } from "./table/process.ts";
import { resourceFields } from "./table/resources.ts";
import { runtimeFields } from "./table/runtime.ts";
import { serverFields } from "./table/server.ts";
import { sourceFields } from "./table/sources.ts";

/** Every setting of the agent. To add one, add an entry to the table of its topic; all else is made from it. */
export const agentOptions = {
  ...sourceFields,
  ...runtimeFields,
  ...resourceFields,
  ...evictionFields,
  ...serverFields,
  ...loggingFields,
  ...processFlags,
  ...apiServerFlags,
  ...cadvisorFlags,
} as const satisfies OptionTable;

/** The settings of the agent, complete. */
export type AgentOptions = Values<typeof agentOptions>;

/** The name of an option in the code. */
export type OptionName = keyof AgentOptions;

/** The names of all options. */
export const optionNames = Object.keys(agentOptions) as readonly OptionName[]; // reason: the keys of this very object

/** Returns the table entry of an option, without its value type. */
export function optionOf(name: OptionName): (typeof anyOptions)[string] {
  const entry = anyOptions[name];
  if (entry === undefined) throw new Error(`no option ${name}`);
  return entry;
}

const anyOptions: OptionTable = agentOptions;
