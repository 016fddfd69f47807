import { type LoadedConfiguration, loadConfiguration, problemLines, readInputs } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { CliError } from "./cli-error.ts";
import type { CliDeps } from "./command.ts";
import { configReader } from "./config-reader.ts";

/** The configuration that a command line results in, with its problems. */
export async function loadArguments(
  argv: readonly string[],
  deps: CliDeps,
  { signal }: Abortable,
): Promise<LoadedConfiguration> {
  return loadConfiguration(await readInputs(argv, configReader(deps), { signal }));
}

/** The configuration of a file as the agent would run with it. Throws its problems and prints its warnings. */
export async function loadFile(file: string, deps: CliDeps, { signal }: Abortable): Promise<LoadedConfiguration> {
  const loaded = await loadArguments([`--config=${file}`], deps, { signal });
  refuseProblems(loaded);
  if (loaded.values.config === "") throw new CliError(`${file}: not a KubeletConfiguration`);
  return loaded;
}

/** Throws all problems as one error. */
export function refuseProblems({ problems }: LoadedConfiguration): void {
  if (problems.length > 0) throw new CliError(problemLines(problems).join("\nerror: "));
}

/** Warnings, one line each on stderr. */
export async function tellWarnings({ warnings }: LoadedConfiguration, { err }: CliDeps, at: Abortable): Promise<void> {
  for (const line of problemLines(warnings)) await err.send(`warning: ${line}\n`, at);
}
