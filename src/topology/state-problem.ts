import { ConfigurationError } from "../config/index.ts";
import { messageOf } from "../lib/errors.ts";

/** The error about a state file that cannot be read, in Kubernetes' words. */
export function unreadableState(error: unknown, manager: "CPU" | "memory", path: string): ConfigurationError {
  const fix = `please drain this node and delete the ${manager} manager checkpoint file "${path}" before restarting Kubelet`;
  return new ConfigurationError("Impossible", `could not restore state from checkpoint: ${messageOf(error)}, ${fix}`);
}

/** Answers what `validate` does. Throws a ConfigurationError, in Kubernetes' words, if the state does not fit. */
export function validated<State>(validate: () => State): State {
  try {
    return validate();
  } catch (error) {
    const fix = "please drain node and remove policy state file";
    throw new ConfigurationError("Impossible", `invalid state, ${fix}: ${messageOf(error)}`);
  }
}
