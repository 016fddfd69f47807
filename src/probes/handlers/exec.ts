import { RuntimeError } from "../../adapters/runtime/port.ts";
import { ConfigError } from "../../model/config-error.ts";
import { formatDuration } from "../../model/duration.ts";
import { expandWords } from "../../model/env-expand.ts";
import type { Container, ExecAction } from "../../model/generated/types.ts";
import { failed, type ProbeHandler, type Verdict } from "./handler.ts";

const OUTPUT_LIMIT = 10 * 1024;
/** Upper limit of an expanded command: it is sent to the runtime at each period. */
const MOST_COMMAND_BYTES = 1024 * 1024;

/** Executes a command in the container; exit code 0 is a success. */
export const exec: ProbeHandler = {
  name: "exec",
  async run({ runtime }, probe, { target, signal, timeoutMs }): Promise<Verdict> {
    const command = commandOf(probe.exec, target.container);
    if (command instanceof ConfigError) return failed(`command is too long: ${command.message}`);
    const timeoutSeconds = timeoutMs / 1000;
    try {
      const { exitCode, stdout, stderr } = await runtime.execSync(
        target.containerId,
        { command, timeoutSeconds },
        { signal },
      );
      const output = Buffer.concat([stdout, stderr]).subarray(0, OUTPUT_LIMIT).toString("utf8");
      return { result: exitCode === 0 ? "success" : "failure", output };
    } catch (error) {
      if (!(error instanceof RuntimeError && error.code === "Timeout")) throw error;
      const shown = JSON.stringify(command.join(" "));
      return failed(`command timed out: ${shown} timed out after ${formatDuration(timeoutMs)}`);
    }
  },
};

/** Cache of expanded commands; a changed pod has new objects. */
const expanded = new WeakMap<ExecAction, { container: Container; command: readonly string[] | ConfigError }>();

function commandOf(action: ExecAction | undefined, container: Container): readonly string[] | ConfigError {
  if (action === undefined) return [];
  const known = expanded.get(action);
  if (known?.container === container) return known.command;
  const command = expandCommand(action.command ?? [], container);
  expanded.set(action, { container, command });
  return command;
}

/** Expands only variables with a literal value in the spec, as in Kubernetes. */
function expandCommand(command: readonly string[], container: Container): string[] | ConfigError {
  const known = new Map<string, string>();
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (valueFrom === undefined) known.set(name, value ?? "");
  }
  try {
    return expandWords(command, (name) => known.get(name), MOST_COMMAND_BYTES);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}
