import { RuntimeError } from "../../adapters/runtime/port.ts";
import { expandEnv } from "../../model/env-expand.ts";
import type { Container } from "../../model/generated/types.ts";
import { failed, type ProbeHandler, type Verdict } from "./handler.ts";

const OUTPUT_LIMIT = 10 * 1024;

/** Runs a command in the container: exit code 0 is a success. */
export const exec: ProbeHandler = {
  name: "exec",
  async run({ runtime }, probe, { target, signal, timeoutMs }): Promise<Verdict> {
    const command = expandCommand(probe.exec?.command ?? [], target.container);
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
      return failed(`command timed out: "${command.join(" ")}" timed out after ${timeoutSeconds}s`);
    }
  },
};

/** Only variables that stand in the manifest with their values are known here, as in Kubernetes. */
function expandCommand(command: readonly string[], container: Container): string[] {
  const known = new Map<string, string>();
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (valueFrom === undefined) known.set(name, value ?? "");
  }
  return command.map((word) => expandEnv(word, (name) => known.get(name)));
}
