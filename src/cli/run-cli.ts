import { AgentError } from "../adapters/net/unix-client.ts";
import { agentOptions, parseAgentOptions, parseOptions } from "../config/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { gitVersion, versionInfo } from "../lib/version.ts";
import { CliError, ReaderLeft } from "./cli-error.ts";
import type { CliDeps, Command } from "./command.ts";
import { commands } from "./commands.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { print } from "./print.ts";

/** What a shell expects of a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/**
 * The whole command line. Returns the exit code; what the user can mend is one line on stderr and code 1.
 * Anything else that is thrown is a bug and left to the caller.
 */
export async function runCli(argv: readonly string[], deps: CliDeps, { signal }: Abortable): Promise<number> {
  try {
    const [first = "", ...rest] = argv;
    if (first === "" || first.startsWith("-")) return await runAgent(argv, deps, { signal });
    if (first === "help") return await runHelp(rest, deps, { signal });
    const entry = commands.find(({ name }) => name === first);
    if (entry === undefined) throw unknownCommand(first);
    return await runCommand(entry, rest, { deps, signal });
  } catch (error) {
    if (error instanceof ReaderLeft) return 0;
    if (isAborted(error, signal)) return deps.out.isBroken() ? 0 : INTERRUPTED;
    if (!(error instanceof CliError || error instanceof CodedError)) throw error;
    const code = error instanceof CliError ? error.exitCode : 1;
    const hint = error instanceof AgentError && error.code === "NoAgent" ? "; has it just stopped?" : "";
    await deps.err.send(`error: ${oneLine(error.message)}${hint}\n`, { signal }).catch(() => false);
    return code;
  }
}

async function runAgent(argv: readonly string[], deps: CliDeps, { signal }: Abortable): Promise<number> {
  const { values, problems } = parseAgentOptions(argv);
  if (values.help) return say(generalHelp(commands), deps, { signal });
  refuse(problems, "kubelet --help");
  if (values.version === "raw") return say(`${JSON.stringify(versionInfo())}\n`, deps, { signal });
  if (values.version !== agentOptions.version.default) return say(`Kubernetes ${gitVersion}\n`, deps, { signal });
  return deps.launcher.run(values, { signal });
}

async function runCommand(
  entry: Command,
  argv: readonly string[],
  { deps, signal }: Abortable & { deps: CliDeps },
): Promise<number> {
  const parsed = parseOptions(argv, entry.options);
  if (parsed.values["help"] === true) return say(commandHelp(entry), deps, { signal });
  const { min, max } = entry.words;
  const problems = [...parsed.problems];
  if (parsed.words.length < min) problems.push(`kubelet ${entry.name} needs ${entry.usage}`);
  for (const word of parsed.words.slice(max)) problems.push(`unexpected word "${word}"`);
  refuse(problems, `kubelet ${entry.name} --help`);
  return entry.run(parsed, deps, { signal });
}

async function runHelp([name]: readonly string[], deps: CliDeps, { signal }: Abortable): Promise<number> {
  const entry = commands.find((candidate) => candidate.name === name);
  if (name !== undefined && entry === undefined) throw unknownCommand(name);
  return say(entry === undefined ? generalHelp(commands) : commandHelp(entry), deps, { signal });
}

async function say(text: string, { out }: CliDeps, { signal }: Abortable): Promise<number> {
  await print(out, text, { signal });
  return 0;
}

/** All that is wrong with a command line, at once. */
function refuse(problems: readonly string[], help: string): void {
  if (problems.length > 0) throw new CliError(`${problems.join("\nerror: ")} (see ${help})`);
}

function unknownCommand(name: string): CliError {
  const near = nearest(name, ["help", ...commands.map((entry) => entry.name)], 1);
  const meant = near[0] === undefined ? "" : `; did you mean "${near[0]}"?`;
  return new CliError(`unknown command "${name}"${meant} (see kubelet --help)`);
}

/** Foreign messages in one line; our own lists of problems keep theirs. */
function oneLine(message: string): string {
  return message.includes("\nerror: ") ? message : message.replaceAll(/\s*\n\s*/g, " ");
}
