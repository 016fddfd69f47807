export { conflicts, derive, parseAgentOptions } from "./agent.ts";
export { type AgentOptions, agentOptions } from "./agent-options.ts";
export { optionHelp, wrap } from "./help.ts";
export { bool, duration, type Headers, headers, int, list, oneOf, optionalInt, text } from "./kinds.ts";
export { type Option, type OptionKind, type OptionTable, option, type Topic, type Values } from "./option.ts";
export { type Parsed, parseOptions } from "./parse.ts";
export { absolutePath, atLeast, between, ip, unixEndpoint } from "./rules.ts";
export { OptionStore } from "./store.ts";
