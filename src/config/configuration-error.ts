import { CodedError } from "../lib/errors.ts";

/**
 * `Invalid`: a configuration that is not taken. `Impossible`: does not go with how the agent was started, or with what
 * this machine is and has stored. `NotStored`: it could not be written. `Damaged`: what is stored cannot be read.
 * `RolledBack`: the agent must start again under another.
 */
export class ConfigurationError extends CodedError<"Invalid" | "Impossible" | "NotStored" | "Damaged" | "RolledBack"> {}
